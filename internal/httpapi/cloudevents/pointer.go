package cloudevents

import (
	"encoding/json"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// A Pointer is a JSON pointer (RFC 6901), split.
type Pointer []string

// ParsePointer reads a pointer such as /links/0/href. The empty pointer is nil
// and refers to nothing.
func ParsePointer(s string) (Pointer, error) {
	if s == "" {
		return nil, nil
	}
	if s[0] != '/' {
		return nil, invalid("", strconv.Quote(s)+" is not a JSON pointer", "start it with a slash, such as /id")
	}
	parts := strings.Split(s[1:], "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

// escape escapes the name of a member for a pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// text finds the string or number at p in valid JSON.
func (p Pointer) text(data json.RawMessage) (string, bool) {
	for _, part := range p {
		data = step(data, part)
		if data == nil {
			return "", false
		}
	}
	var s string
	if json.Unmarshal(data, &s) == nil && data[0] == '"' {
		return s, true
	}
	var n json.Number
	if json.Unmarshal(data, &n) == nil && n != "" {
		return n.String(), true
	}
	return "", false
}

func step(data json.RawMessage, part string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) == nil {
		return members[part]
	}
	var elements []json.RawMessage
	i, err := strconv.Atoi(part)
	if err != nil || json.Unmarshal(data, &elements) != nil || i < 0 || i >= len(elements) {
		return nil
	}
	return elements[i]
}

// A Mapping has the positions of event attributes in plain data.
type Mapping struct {
	ID   Pointer // nil: the server generates an id
	Time Pointer // nil: the time of receipt
}

// Event creates an event from plain data, which is checked and not copied.
func (m Mapping) Event(data []byte) (fanfare.Event, error) {
	if err := checkData(data, ""); err != nil {
		return fanfare.Event{}, err
	}
	e := fanfare.Event{Data: data}
	for _, a := range []struct {
		name string
		at   Pointer
	}{{"id", m.ID}, {"time", m.Time}} {
		if a.at == nil {
			continue
		}
		pointer := ""
		for _, part := range a.at {
			pointer += "/" + escape(part)
		}
		value, ok := a.at.text(data)
		if !ok {
			return fanfare.Event{}, invalid(pointer, "the data has no string or number at this pointer for "+a.name, "")
		}
		if err := set(&e, a.name, value, pointer); err != nil {
			return fanfare.Event{}, err
		}
	}
	return e, nil
}
