package cloudevents

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// Decode reads one event in the JSON event format. Data is a copy.
func Decode(b []byte) (fanfare.Event, error) {
	if !utf8.Valid(b) {
		return fanfare.Event{}, invalid("", "the event is not valid UTF-8", "")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil || members == nil {
		if !json.Valid(b) {
			return fanfare.Event{}, syntax(b, "")
		}
		return fanfare.Event{}, invalid("", "the event is not a JSON object", "see https://cloudevents.io for the JSON event format")
	}
	var e fanfare.Event
	versioned := false
	for name, raw := range members {
		if name == "data" || name == "data_base64" || string(raw) == "null" {
			continue // null is the same as absent (JSON event format, 2.2)
		}
		value, err := attribute(name, raw)
		if err != nil {
			return fanfare.Event{}, err
		}
		if err := set(&e, name, value, "/"+name); err != nil {
			return fanfare.Event{}, err
		}
		if !known(name) && raw[0] != '"' {
			e.Extensions[name] = raw // numbers and Booleans keep their type
		}
		versioned = versioned || name == "specversion"
	}
	if err := required(&e, versioned, func(name string) string { return "/" + name }); err != nil {
		return fanfare.Event{}, err
	}
	return e, setMembers(&e, members)
}

// DecodeBatch reads events in the JSON batch format. An error has the index of every
// invalid event.
func DecodeBatch(b []byte) ([]fanfare.Event, error) {
	var members []json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil || members == nil {
		if !json.Valid(b) {
			return nil, syntax(b, "")
		}
		return nil, invalid("", "the batch is not a JSON array", "see https://cloudevents.io for the JSON batch format")
	}
	events := make([]fanfare.Event, len(members))
	var wrong []*fanfare.Error
	for i, raw := range members {
		var err error
		if events[i], err = Decode(raw); err != nil {
			wrong = append(wrong, AtIndex(i, err)...)
		}
	}
	if wrong != nil {
		return nil, Refused(wrong)
	}
	return events, nil
}

// AtIndex returns err and its details as errors of member i of a batch.
func AtIndex(i int, err error) []*fanfare.Error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return []*fanfare.Error{{Code: fanfare.Internal, Pointer: "/" + strconv.Itoa(i), Message: "an internal error occurred"}}
	}
	if len(e.Details) == 0 {
		at := *e
		at.Pointer = "/" + strconv.Itoa(i) + e.Pointer
		return []*fanfare.Error{&at}
	}
	var all []*fanfare.Error
	for _, d := range e.Details {
		all = append(all, AtIndex(i, d)...)
	}
	return all
}

// Refused returns the error for a batch, which is stored as a whole or not at all.
func Refused(wrong []*fanfare.Error) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: "nothing was stored: some events of the batch are invalid", Hint: "correct the invalid events and send the whole batch again", Details: wrong}
}

// attribute returns the value of a context attribute as text.
func attribute(name string, raw json.RawMessage) (string, error) {
	if !validName(name) {
		return "", invalid("/"+escape(name), fmt.Sprintf("%q is not a valid attribute name", name), "use only lower-case letters and digits in attribute names, or move your own fields into data")
	}
	var s string
	if raw[0] == '"' {
		err := json.Unmarshal(raw, &s)
		return s, err
	}
	if known(name) || raw[0] == '{' || raw[0] == '[' {
		return "", invalid("/"+name, name+" must be a string", "")
	}
	return string(raw), nil // an extension: number or Boolean
}

// setMembers sets data from the member data or data_base64.
func setMembers(e *fanfare.Event, members map[string]json.RawMessage) error {
	data, encoded := members["data"], members["data_base64"]
	if string(encoded) == "null" {
		encoded = nil
	}
	if encoded == nil {
		if e.Data = data; data == nil {
			return nil
		}
		return checkData(data, "/data")
	}
	if data != nil {
		return invalid("/data_base64", "data and data_base64 cannot both be set", "")
	}
	var text string
	if err := json.Unmarshal(encoded, &text); err != nil {
		return invalid("/data_base64", "data_base64 must be a string", "")
	}
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return invalid("/data_base64", "data_base64 is not valid base64", "")
	}
	return setData(e, plain, "/data_base64")
}

func known(name string) bool {
	switch name {
	case "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema":
		return true
	}
	return false
}

// validName reports whether an attribute name is valid (core, "Attribute Naming Convention").
func validName(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
