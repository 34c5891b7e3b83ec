package cloudevents

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"fanfare.dev/fanfare"
)

const headerPrefix = "Ce-" // canonical form of ce-

// Plain reads an event whose data is the body: the binary mode where the
// headers have ce-specversion, and else plain JSON, whose attributes may stand
// in ce-* headers and where missing ones are left empty for the caller. Data
// is the body itself, not a copy.
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
	for key, values := range header {
		name, ok := strings.CutPrefix(key, headerPrefix)
		if !ok || len(values) == 0 {
			continue
		}
		name = strings.ToLower(name)
		if !validName(name) {
			return fanfare.Event{}, invalid("/"+name, "header ce-"+name+" cannot be an attribute", "attributes are named by letters and digits")
		}
		if len(values) > 1 {
			return fanfare.Event{}, invalid("/"+name, "header ce-"+name+" stands twice", "")
		}
		if err := set(&e, name, unescapeHeader(values[0]), "/"+name); err != nil {
			return fanfare.Event{}, err
		}
	}
	if header.Get("Ce-Specversion") == "" {
		return e, nil
	}
	return e, required(&e, true, func(name string) string { return "/" + name })
}

// unescapeHeader undoes the percent-encoding of header values (HTTP binding,
// 3.1.3.2). A value that was not encoded stays as it is.
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
