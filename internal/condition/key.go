package condition

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// MaxKeyBytes is how long the text of a key may be: an event with a longer one has
// no key.
const MaxKeyBytes = 256

// parseKey reads the key of a definition: the names of fields, joined by dots.
func parseKey(text string, event *schemaType) (steps []string, err error) {
	if text == "" {
		return nil, nil
	}
	steps = keySteps(text)
	if steps == nil {
		e := invalid("/key", "the key %q is not the name of a field", text)
		e.Hint = "write the field of the data that tells whose event it is, such as symbol, quote.symbol or quote['stock-symbol']"
		return nil, e
	}
	for _, step := range steps {
		if event.kind != kindAny && event.kind != kindMap {
			return nil, invalid("/key", "%s has no field %q", event.kind, step)
		}
		field, known := event.field(step)
		if !known {
			return nil, unknownMember(invalid("/key", ""), "field", step, event.names())
		}
		event = field
	}
	switch event.kind {
	case kindAny, kindString, kindInt, kindDouble, kindBool:
		return steps, nil
	}
	return nil, invalid("/key", "the key %s is %s; it takes a string, a number or a Boolean", text, event.kind)
}

// keyStep is one step of a key: a name, or a text in brackets, which may be the first as a name
// in backticks may, or .name, or one in backticks behind a dot.
var keyStep = regexp.MustCompile("^(?:\\.?([_a-zA-Z][_a-zA-Z0-9]*)|\\.?`([-_./ a-zA-Z0-9]+)`|\\['([^'\\\\]*)'\\]|\\[\"([^\"\\\\]*)\"\\])")

// keySteps takes a key apart, which is written as a condition writes a field of the event:
// quote.symbol, quote['stock-symbol'] or quote.`stock-symbol`. It is nil for anything else.
func keySteps(text string) (steps []string) {
	for rest := text; rest != ""; {
		found := keyStep.FindStringSubmatch(rest)
		if found == nil || (rest[0] == '.') == (len(steps) == 0) && rest[0] != '[' {
			return nil
		}
		steps = append(steps, found[1]+found[2]+found[3]+found[4])
		rest = rest[len(found[0]):]
	}
	return steps
}

// KeyOf returns the key of an event: the text of the field that the topic names as
// its key. It has none where the topic names no field, and where the field is
// missing, null, empty, a list, an object, longer than MaxKeyBytes, or has a zero byte. A number and the
// text that writes it are the same key, and so are 5 and 5.0.
func (x *Index) KeyOf(key Key, data json.RawMessage) (text string, ok bool, err error) {
	t, err := x.topic(key)
	if err != nil {
		return "", false, err
	}
	c := t.compiled.Load()
	if c.key == nil {
		return "", false, nil
	}
	var d document
	first := map[string]*pathUse{c.key.steps[0]: {index: c.key.member}}
	if err := d.scan(data, c.filterScope.event, first, 1); err != nil {
		return "", false, err
	}
	v, _ := d.follow(c.key)
	text, ok = keyTextOf(v)
	return text, ok, nil
}

// KeyAt returns what KeyOf would for a topic with this key and without a schema.
func KeyAt(field string, data json.RawMessage) (text string, ok bool) {
	v, err := decodeData(data, nil)
	steps := keySteps(field)
	if err != nil || steps == nil {
		return "", false
	}
	v, _ = followSteps(steps, v)
	return keyTextOf(v)
}

// keyTextOf is the text of a value that is a key.
func keyTextOf(v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		text = v
	case bool:
		text = strconv.FormatBool(v)
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v+0, 'f', -1, 64) // -0 is 0
	default:
		return "", false
	}
	return text, text != "" && len(text) <= MaxKeyBytes && strings.IndexByte(text, 0) < 0
}
