package cloudevents

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// Limits of one event.
const (
	MaxDataBytes      = 256 << 10 // size of data
	maxAttributeBytes = 1024      // size of any other attribute
	maxExtensions     = 64        // number of extension attributes
)

// set sets one context attribute. pointer identifies it in errors.
func set(e *fanfare.Event, name, value, pointer string) error {
	if len(value) > maxAttributeBytes {
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: pointer, Message: fmt.Sprintf("%s is longer than %d bytes", name, maxAttributeBytes)}
	}
	if err := checkText(value); err != "" {
		return invalid(pointer, name+" "+err, "")
	}
	switch name {
	case "specversion":
		if value != "1.0" {
			return invalid(pointer, fmt.Sprintf("specversion %q is not supported", value), "use CloudEvents 1.0, the only supported version")
		}
	case "id":
		if value == "" {
			return invalid(pointer, "id must not be empty", "")
		}
		if fanfare.ReservedID(value) {
			return invalid(pointer, fmt.Sprintf("id %q begins with a prefix that is reserved for Fanfare", value), "choose an id that does not begin with evt-, dlv- or sub-")
		}
		e.ID = value
	case "source":
		if _, err := url.Parse(value); err != nil || value == "" {
			return invalid(pointer, fmt.Sprintf("source %q is not a URI-reference", value), "use a URL or a path, such as /sensors/7")
		}
		e.Source = value
	case "type":
		if value == "" {
			return invalid(pointer, "type must not be empty", "")
		}
		e.Type = value
	case "subject":
		if value == "" {
			return invalid(pointer, "subject must not be empty", "omit it")
		}
		e.Subject = value
	case "time":
		t, err := time.Parse(time.RFC3339Nano, value)
		if err != nil {
			return invalid(pointer, fmt.Sprintf("time %q is not a valid time", value), "use the RFC 3339 format, such as 2026-11-20T08:15:00Z")
		}
		e.Time = t
	case "datacontenttype":
		if _, _, err := mime.ParseMediaType(value); err != nil {
			return invalid(pointer, fmt.Sprintf("datacontenttype %q is not a media type", value), "use a media type such as application/json or text/plain")
		}
		if e.ContentType = value; value == "application/json" {
			e.ContentType = ""
		}
	case "dataschema":
		if u, err := url.Parse(value); err != nil || !u.IsAbs() {
			return invalid(pointer, fmt.Sprintf("dataschema %q is not an absolute URI", value), "")
		}
		e.DataSchema = value
	case "data", "data_base64":
		return invalid(pointer, name+" is not a valid attribute name", "")
	default:
		return extend(e, name, quoted(value), pointer)
	}
	return nil
}

// extend stores an extension attribute.
func extend(e *fanfare.Event, name string, value json.RawMessage, pointer string) error {
	if e.Extensions == nil {
		e.Extensions = map[string]json.RawMessage{}
	}
	if e.Extensions[name] = value; len(e.Extensions) > maxExtensions {
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: pointer, Message: fmt.Sprintf("the event has more than %d extension attributes", maxExtensions), Hint: "move your own fields into data"}
	}
	return nil
}

// quoted returns s, which is UTF-8, as JSON.
func quoted(s string) json.RawMessage {
	text, _ := json.Marshal(s) // a string cannot fail
	return text
}

// required returns an error if a required attribute is missing.
func required(e *fanfare.Event, versioned bool, pointer func(string) string) error {
	for _, a := range []struct {
		name    string
		missing bool
	}{{"specversion", !versioned}, {"id", e.ID == ""}, {"source", e.Source == ""}, {"type", e.Type == ""}} {
		if a.missing {
			return invalid(pointer(a.name), "required attribute "+a.name+" is missing", "CloudEvents 1.0 needs specversion, id, source and type")
		}
	}
	return nil
}

// setData stores data that was sent as bytes: JSON unchanged, text as a JSON
// string, anything else as bytes.
func setData(e *fanfare.Event, data []byte, pointer string) error {
	if e.ContentType == "" || IsJSON(e.ContentType) {
		e.Data = data
		return checkData(data, pointer)
	}
	if len(data) > MaxDataBytes {
		return tooMuchData(len(data), pointer)
	}
	if utf8.Valid(data) {
		e.Data = quoted(string(data))
	} else {
		e.Binary = data
	}
	return nil
}

func tooMuchData(sizeBytes int, pointer string) error {
	return &fanfare.Error{Code: fanfare.TooLarge, Pointer: pointer, Message: fmt.Sprintf("data has %d bytes; at most %d are allowed", sizeBytes, MaxDataBytes), Hint: "send less data, or a link to it"}
}

// checkData returns an error unless the data is one JSON value in UTF-8.
func checkData(data []byte, pointer string) error {
	if len(data) > MaxDataBytes {
		return tooMuchData(len(data), pointer)
	}
	if !utf8.Valid(data) {
		return invalid(pointer, "data is not valid UTF-8", "")
	}
	if !json.Valid(data) {
		return syntax(data, pointer)
	}
	return nil
}

// syntax returns the position of the syntax error in the JSON of b.
func syntax(b []byte, pointer string) error {
	e := &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: "is not valid JSON"}
	var v any
	err := json.Unmarshal(b, &v)
	if broken, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := b[:min(int(broken.Offset), len(b))]
		e.Line = strings.Count(string(before), "\n") + 1
		e.Column = max(1, len(before)-1-strings.LastIndex(string(before), "\n"))
		e.Message += ": " + broken.Error()
	}
	return e
}

// checkText returns why the specification does not allow a string
// (core, "Type System"), or "".
func checkText(s string) string {
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef {
			return "contains a control character"
		}
	}
	return ""
}

// IsJSON reports whether a media type is JSON (RFC 8259) or +json (RFC 6839).
func IsJSON(mediaType string) bool {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	return mediaType == "application/json" || mediaType == "text/json" ||
		strings.HasPrefix(mediaType, "application/") && strings.HasSuffix(mediaType, "+json")
}

func invalid(pointer, message, hint string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: hint}
}

// Set sets one attribute, such as id or source, that was given separately from the
// event.
func Set(e *fanfare.Event, name, value string) error { return set(e, name, value, "") }
