package render

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/osteele/liquid/values"
)

// A field is a personal value that a template puts out as it is. It is read
// where it stands: a string of the recipient, or a value inside its JSON, found
// without decoding what is around it.
type field struct {
	from fieldSource
	path []string // inside the JSON
	rest []any    // the same, as lookup takes it
	name string   // as the template spells it
	line int      // of the template
	raw  bool     // not escaped

	fallback any // of the filter default, or nil
}

type fieldSource uint8

const (
	subscriberID fieldSource = iota
	subscriberAddress
	subscriberLocale
	subscriberTimeZone
	subscriberAttributes
	subscriptionID
	subscriptionRule
	subscriptionParams
	subscriptionData
	recipientData
	unsubscribeURL
	tallyCount
	tallyMore
	tallyItems
)

// tallies are the numbers that a digest has.
var tallies = map[string]fieldSource{"count": tallyCount, "more": tallyMore, "items.size": tallyItems}

// newField returns nil for a unit that needs a template.
func newField(u unit) *field {
	if u.single == nil {
		return nil
	}
	p := *u.single
	names, ok := p.names()
	if !ok {
		return nil
	}
	f := field{name: p.text, line: p.line, raw: u.raw, fallback: u.fallback}
	if p.root == "unsubscribe_url" && len(names) == 0 {
		f.from = unsubscribeURL
		return &f
	}
	if from, ok := tallies[strings.Join(append([]string{p.root}, names...), ".")]; ok {
		f.from = from
		return &f
	}
	if len(names) == 0 {
		return nil
	}
	if p.root == "sub" {
		f.from = recipientData
		f.inside(names)
		return &f
	}
	source, known := map[string]fieldSource{
		"subscriber.id":         subscriberID,
		"subscriber.address":    subscriberAddress,
		"subscriber.locale":     subscriberLocale,
		"subscriber.time_zone":  subscriberTimeZone,
		"subscriber.attributes": subscriberAttributes,
		"subscription.id":       subscriptionID,
		"subscription.rule":     subscriptionRule,
		"subscription.params":   subscriptionParams,
		"subscription.data":     subscriptionData,
	}[p.root+"."+names[0]]
	nested := names[1:]
	inJSON := source == subscriberAttributes || source == subscriptionParams || source == subscriptionData
	if !known || len(nested) > 0 && !inJSON {
		return nil
	}
	f.from = source
	f.inside(nested)
	return &f
}

// inside sets where in its JSON the field is.
func (f *field) inside(path []string) {
	f.path = path
	for _, n := range path {
		f.rest = append(f.rest, n)
	}
}

// append appends the field's text, or reports that it is missing.
func (f *field) append(dst []byte, r *Recipient, url []byte, m mode) ([]byte, bool) {
	if f.raw {
		m = plain
	}
	out, empty, ok := f.read(dst, r, url, m)
	if f.fallback != nil && (empty || !ok) {
		return appendValue(dst, f.fallback, m), true
	}
	return out, ok
}

// read appends the field's text. empty tells that the filter default would
// replace the value, ok that there is one.
func (f *field) read(dst []byte, r *Recipient, url []byte, m mode) (out []byte, empty, ok bool) {
	var raw json.RawMessage
	switch f.from {
	case subscriberID:
		return appendText(dst, r.ID, m), r.ID == "", true
	case subscriberAddress:
		return appendText(dst, r.Address, m), r.Address == "", true
	case subscriberLocale:
		return appendText(dst, r.Locale, m), r.Locale == "", true
	case subscriberTimeZone:
		return appendText(dst, r.TimeZone, m), r.TimeZone == "", true
	case unsubscribeURL:
		return appendText(dst, url, m), len(url) == 0, true
	case tallyCount:
		return strconv.AppendInt(dst, int64(r.count()), 10), false, true
	case tallyMore:
		return strconv.AppendInt(dst, int64(r.More), 10), false, true
	case tallyItems:
		return strconv.AppendInt(dst, int64(len(r.Items)), 10), false, true
	case subscriberAttributes:
		raw = r.Attributes
	case recipientData:
		raw = r.Data
	default:
		if len(r.Subscriptions) == 0 {
			return dst, false, false
		}
		s := &r.Subscriptions[0]
		switch f.from {
		case subscriptionID:
			return appendText(dst, s.ID, m), s.ID == "", true
		case subscriptionRule:
			return appendText(dst, s.Rule, m), s.Rule == "", true
		case subscriptionParams:
			raw = s.Params
		default:
			raw = s.Data
		}
	}
	if len(raw) == 0 {
		return dst, false, false
	}
	if found, ok := find(raw, f.path); ok {
		if out, ok := appendJSON(dst, found, m); ok {
			return out, emptyJSON(found), true
		}
	}
	value, err := decode(raw)
	if err != nil {
		return dst, false, false
	}
	if value, ok = lookup(value, f.rest); !ok {
		return dst, false, false
	}
	return appendValue(dst, value, m), value == nil || values.IsEmpty(value), true
}

// emptyJSON reports whether the filter default would replace a value of JSON.
func emptyJSON(raw []byte) bool {
	switch string(raw) {
	case "null", "false", `""`:
		return true
	}
	return false
}

// appendJSON appends the text of a JSON value if that needs no decoding.
func appendJSON(dst, raw []byte, m mode) ([]byte, bool) {
	switch c := raw[0]; {
	case c == '"':
		return appendText(dst, raw[1:len(raw)-1], m), true
	case string(raw) == "null":
		return dst, true
	case string(raw) == "true" || string(raw) == "false":
		return append(dst, raw...), true
	case c == '-' || digit(c):
		if len(raw) < 16 && c != '-' && allDigits(raw) {
			return append(dst, raw...), true
		}
		return appendValue(dst, number(string(raw)), m), true
	}
	return dst, false
}

func allDigits(b []byte) bool {
	for _, c := range b {
		if !digit(c) {
			return false
		}
	}
	return true
}
