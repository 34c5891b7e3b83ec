package render

import (
	"strings"
	"unicode"

	"fanfare.dev/fanfare"
)

// fieldsVariable is what templates in the syntax of Notify read: the fields of the
// recipient's own data and those of the event, by names that ignore how they are
// spelled.
const fieldsVariable = "fanfare_fields"

// What follows a name that is ifThere about: whether it is there, which writes nothing,
// and whether it says yes.
const (
	ifThere = "!"
	ifYes   = "??"
)

// fields are those that one recipient's message has.
type fields struct {
	own, event map[string]any // by plainName
	link       string
}

// unsubscribeField is the name of the link.
const unsubscribeField = "unsubscribeurl"

// newFields takes the fields of two objects; what is no object has none.
func newFields(own, event map[string]any, link string) *fields {
	return &fields{own: own, event: event, link: link}
}

// plainNames are the members of an object by their plain names.
func plainNames(object any) map[string]any {
	members, _ := object.(map[string]any)
	plain := make(map[string]any, len(members))
	for name, value := range members {
		plain[plainName(name)] = value
	}
	return plain
}

// plainName is a name without what Notify ignores in it.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// fieldName is the plain name of a field that a path reads.
func fieldName(name string) string {
	return plainName(strings.TrimSuffix(strings.TrimSuffix(name, ifThere), ifYes))
}

// step returns a field as a template puts it out. A null is missing.
func (f *fields) step(name string) (any, bool) {
	key := fieldName(name)
	value, ok := f.own[key]
	if !ok || value == nil {
		value, ok = f.event[key]
	}
	if key == unsubscribeField && value == nil {
		value, ok = f.link, true
	}
	switch {
	case !ok || value == nil:
		return nil, false
	case strings.HasSuffix(name, ifYes):
		return saysYes(value), true
	case strings.HasSuffix(name, ifThere):
		return "", true
	}
	if list, ok := value.([]any); ok {
		return inSentence(list), true
	}
	return value, true
}

// saysYes knows the words that Notify takes for a yes.
func saysYes(value any) bool {
	switch strings.ToLower(string(appendValue(nil, value, plain))) {
	case "yes", "y", "true", "t", "1", "include", "show":
		return true
	}
	return false
}

// inSentence joins what is in a list: a, b and c.
func inSentence(list []any) string {
	var all []string
	for _, one := range list {
		if text := strings.TrimSpace(string(appendValue(nil, one, plain))); text != "" {
			all = append(all, text)
		}
	}
	if n := len(all); n > 1 {
		return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	return strings.Join(all, "")
}

// checkField compares a field with the schema of a topic, whose messages have no
// fields but those of the event.
func checkField(root any, p path) *fanfare.Error {
	_, names, lacks := descend(root, []any{root}, segment{name: p.text})
	key := fieldName(p.segments[0].name)
	if !lacks || key == unsubscribeField {
		return nil
	}
	for _, name := range names {
		if plainName(name) == key {
			return nil
		}
	}
	return invalid(p.line, nearest(key, names), "unknown field %s: the topic's schema has none", p.text)
}
