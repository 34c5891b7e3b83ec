package conditiontest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// kind is the kind of most values of a field.
type kind uint8

const (
	kindString kind = iota
	kindInt
	kindDouble
	kindBool
	kindTime // text in RFC 3339
	kindStrings
	kindNumbers
	kindObjects // a list of objects with id and n
	kindObject
	kindMixed
)

// A field is a field that conditions use.
type field struct {
	path   []string
	kind   kind
	values []string // JSON texts of values that events have
}

// A Profile describes events.
type Profile struct {
	fields  []field
	schemas []string // JSON Schemas that fit; "" is none
	keys    []string // fields that identify the subject of an event
}

// Synthetic is a profile of invented events with few values, so that conditions match them, and
// with unusual values of all kinds.
func Synthetic() *Profile {
	texts := []string{`"a"`, `"ab"`, `""`, `"Vancouver"`, `"vancouver island"`, `"VICTORIA"`, `"abcdabcd"`, `"stra\u00dfe"`, `"K\u212a"`, `"\u03a3\u03c2"`,
		`"\u0130x"`, `"with \"quotes\""`, `"back\\slash"`, `"tab\tline\n"`, `"\ud83d\ude00"`, `"\ud800"`, `"db1"`, `"db2"`, `"web"`}
	numbers := []string{"0", "1", "2", "5", "5.0", "2.5", "-3", "97", "95", "1e2", "-0.0", "9007199254740991", "9007199254740992", "9007199254740993",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e308", "1e999", "-1e999", "0.1"}
	small := []string{"0", "1", "2", "3", "5", "7", "90", "95", "97", "100", "-1"}
	p := &Profile{
		fields: []field{
			{[]string{"s"}, kindString, texts}, {[]string{"p"}, kindString, texts}, {[]string{"host"}, kindString, []string{`"db1"`, `"db2"`, `"web1"`, `"web2"`}},
			{[]string{"n"}, kindDouble, numbers}, {[]string{"m"}, kindDouble, append(small, "2.5", "1e999")}, {[]string{"percent"}, kindDouble, small}, {[]string{"disk"}, kindDouble, small},
			{[]string{"i"}, kindInt, append(small, "9007199254740993", "9223372036854775807")}, {[]string{"b"}, kindBool, []string{"true", "false"}},
			{[]string{"at"}, kindTime, []string{`"2026-03-29T08:30:00+01:00"`, `"2026-03-27T17:30:00Z"`, `"2024-02-29T23:59:59.5Z"`, `"2026-02-29T00:00:00Z"`}},
			{[]string{"tags"}, kindStrings, []string{`[]`, `["a"]`, `["a","b"]`, `["tax","vat"]`, `["a",null,1]`, `["b","a","b"]`}},
			{[]string{"nums"}, kindNumbers, []string{`[]`, `[1]`, `[1,2.5,5]`, `[2,2]`, `[9007199254740993]`, `[1,"a"]`}},
			{[]string{"objs"}, kindObjects, []string{`[]`, `[{"id":"a","n":1}]`, `[{"id":"b","n":5},{"id":"a"}]`, `[{"n":2.5}]`, `[1]`}},
			{[]string{"o"}, kindObject, []string{`{}`, `{"n":1,"s":"a"}`, `{"n":5.0,"s":"ab","o":{"s":"a"}}`, `{"s":null}`}},
			{[]string{"o", "n"}, kindDouble, numbers}, {[]string{"o", "s"}, kindString, texts}, {[]string{"o", "o", "s"}, kindString, texts},
			{[]string{"start-time"}, kindTime, []string{`"2026-03-29T08:30:00Z"`, `"2025-01-01T00:00:00Z"`}}, {[]string{"a b"}, kindDouble, small},
			{[]string{"ack"}, kindString, texts}, {[]string{"lat"}, kindDouble, []string{"48.43", "90", "-17.1", "0", "95"}}, {[]string{"lon"}, kindDouble, []string{"-123.37", "179.9", "0", "180", "-180"}},
			{[]string{"x"}, kindMixed, append(slices.Concat(small, texts[:4]), "null", "true", "[1]", "{}")},
		},
		keys: []string{"", "host", "o.s"},
	}
	properties := `"s":{"type":"string"},"p":{"type":["string","null"]},"host":{"type":"string"},"n":{"type":"number"},"m":{"type":"number"},"percent":{"type":"number"},"disk":{"type":"number"},` +
		`"i":{"type":"integer"},"b":{"type":"boolean"},"at":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"nums":{"type":"array","items":{"type":"number"}},` +
		`"objs":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"number"}}}},"o":{"$ref":"#/$defs/o"},"start-time":{"type":"string"},"a b":{},"ack":{"type":"string"},` +
		`"lat":{"type":"number"},"lon":{"type":"number"},"x":{}`
	inner := `,"$defs":{"o":{"type":"object","properties":{"n":{"type":"number"},"s":{"type":"string"},"o":{"$ref":"#/$defs/o"}}}}`
	p.schemas = []string{"", `{"type":"object","properties":{` + properties + `}` + inner + `}`, `{"properties":{` + properties + `},"additionalProperties":false` + inner + `}`, `{"properties":{"n":{"type":"integer"},"s":{},"host":{}},"additionalProperties":true}`}
	return p
}

// ProfileOf is the profile of real events, each a JSON object.
func ProfileOf(events [][]byte) *Profile {
	values := map[string]map[string]bool{}
	for _, event := range events {
		var object map[string]json.RawMessage
		if json.Unmarshal(event, &object) != nil {
			continue
		}
		for name, raw := range object {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			if len(values[name]) < 500 {
				values[name][string(bytes.TrimSpace(raw))] = true
			}
		}
	}
	p := &Profile{schemas: []string{""}, keys: []string{""}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		f := field{path: []string{name}, values: slices.Sorted(maps.Keys(values[name]))}
		f.kind = kindOf(f.values)
		p.fields = append(p.fields, f)
	}
	return p
}

// kindOf is the kind that most values have.
func kindOf(values []string) kind {
	counts := map[kind]int{}
	for _, v := range values {
		switch {
		case v == "true" || v == "false":
			counts[kindBool]++
		case strings.HasPrefix(v, `"2`) && strings.HasSuffix(v, `Z"`) && strings.Contains(v, "T"):
			counts[kindTime]++
		case strings.HasPrefix(v, `"`):
			counts[kindString]++
		case strings.HasPrefix(v, `[`):
			counts[kindStrings]++
		case strings.HasPrefix(v, `{`):
			counts[kindObject]++
		case v != "null":
			if _, err := strconv.ParseInt(v, 10, 64); err == nil {
				counts[kindInt]++
			} else {
				counts[kindDouble]++
			}
		}
	}
	best := kindMixed
	for k := range counts {
		if best == kindMixed || counts[k] > counts[best] || counts[k] == counts[best] && k < best {
			best = k
		}
	}
	return best
}
