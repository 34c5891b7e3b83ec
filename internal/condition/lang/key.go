package lang

import (
	"regexp"
)

// MaxKeyBytes is the maximum size of a key: an event with a longer text in the key field has no
// key.
const MaxKeyBytes = 256

// parseKey reads the key of a definition: names of fields, joined by dots.
func parseKey(text string, event *SchemaType) (steps []string, err error) {
	if text == "" {
		return nil, nil
	}
	steps = KeySteps(text)
	if steps == nil {
		e := Invalid("/key", "the key %q is not the name of a field", text)
		e.Hint = "set the key to the data field that identifies the subject of the event, for example symbol, quote.symbol or quote['stock-symbol']"
		return nil, e
	}
	for _, step := range steps {
		if event.Kind != KindAny && event.Kind != KindMap {
			return nil, Invalid("/key", "%s has no field %q", event.Kind, step)
		}
		field, known := event.Field(step)
		if !known {
			return nil, UnknownMember(Invalid("/key", ""), "field", step, event.names())
		}
		event = field
	}
	switch event.Kind {
	case KindAny, KindString, KindInt, KindDouble, KindBool:
		return steps, nil
	}
	return nil, Invalid("/key", "the key %s is %s; it must be a string, a number or a Boolean", text, event.Kind)
}

// keyStep matches one step of a key: a name, a name in backticks, or a text in brackets. All but
// the first step begin with a dot or a bracket.
var keyStep = regexp.MustCompile("^(?:\\.?([_a-zA-Z][_a-zA-Z0-9]*)|\\.?`([-_./ a-zA-Z0-9]+)`|\\['([^'\\\\]*)'\\]|\\[\"([^\"\\\\]*)\"\\])")

// KeySteps splits a key, which is written as a condition writes a field of the event: quote.symbol,
// quote['stock-symbol'] or quote.`stock-symbol`. It returns nil for anything else.
func KeySteps(text string) (steps []string) {
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
