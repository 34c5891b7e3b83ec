package cloudevents

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"fanfare.dev/fanfare"
)

const headerPrefix = "Ce-" // canonical form of ce-

// IsBinary reports whether a request that is not structured is a CloudEvent in
// the binary mode (HTTP binding, 3.1), in which data can have any type.
func IsBinary(header http.Header) bool { return header.Get("Ce-Specversion") != "" }

// Binary reads an event in the binary mode: attributes are in ce-* headers, the
// body is the data and Content-Type its type. JSON data is the body itself, not a
// copy.
func Binary(header http.Header, body []byte) (fanfare.Event, error) {
	var e fanfare.Event
	if err := setHeaders(&e, header); err != nil {
		return e, err
	}
	e.ContentType = ""
	if t := header.Get("Content-Type"); t != "" {
		if err := set(&e, "datacontenttype", t, "/datacontenttype"); err != nil {
			return e, err
		}
	}
	if len(body) > 0 {
		if err := setData(&e, body, "/data"); err != nil {
			return e, err
		}
	}
	return e, required(&e, true, func(name string) string { return "/" + name })
}

// Plain reads plain JSON, which is the data. Attributes can be in ce-* headers;
// missing ones remain empty. Data is the body itself, not a copy.
func Plain(header http.Header, body []byte, m Mapping) (fanfare.Event, error) {
	if err := checkData(body, "/data"); err != nil && len(body) > 0 {
		return fanfare.Event{}, err
	}
	e := fanfare.Event{}
	if len(body) > 0 && (m.ID != nil || m.Time != nil) {
		var err error
		if e, err = m.Event(body); err != nil {
			return fanfare.Event{}, err
		}
	}
	if len(body) > 0 {
		e.Data = body
	}
	return e, setHeaders(&e, header)
}

// setHeaders sets the attributes in ce-* headers.
func setHeaders(e *fanfare.Event, header http.Header) error {
	for key, values := range header {
		name, ok := strings.CutPrefix(key, headerPrefix)
		if !ok || len(values) == 0 {
			continue
		}
		name = strings.ToLower(name)
		if !validName(name) {
			return invalid("/"+name, "header ce-"+name+" is not a valid attribute name", "use only letters and digits in attribute names")
		}
		if len(values) > 1 {
			return invalid("/"+name, "header ce-"+name+" occurs twice", "")
		}
		if err := set(e, name, unescapeHeader(values[0]), "/"+name); err != nil {
			return err
		}
	}
	return nil
}

// unescapeHeader undoes the percent-encoding of header values (HTTP binding,
// 3.1.3.2). It does not change a value that is not encoded.
func unescapeHeader(v string) string {
	v = textproto.TrimString(v)
	if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
		v = strings.ReplaceAll(strings.ReplaceAll(v[1:len(v)-1], `\"`, `"`), `\\`, `\`)
	}
	if !strings.Contains(v, "%") {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}
