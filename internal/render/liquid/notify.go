package liquid

import (
	"regexp"
	"strings"
	"unicode"
)

// SyntaxNotify is the syntax of GOV.UK Notify: ((name)) is a field of the recipient's
// own data or else of the event's, and ((flag??text)) is the text if the field flag
// says yes. Names ignore case, spaces, - and _. Nothing else means anything: what
// Liquid would be is text.
const SyntaxNotify = "notify"

// placeholder is what Notify takes for one.
var placeholder = regexp.MustCompile(`\(\(([^()]+)\)\)`)

func FromNotify(source string) string {
	var b strings.Builder
	at := 0
	for _, found := range placeholder.FindAllStringSubmatchIndex(source, -1) {
		verbatim(&b, source[at:found[0]], true)
		name, text, conditional := strings.Cut(source[found[2]:found[3]], "??")
		lines := strings.Repeat("\n", strings.Count(name, "\n"))
		read := func(name string) string {
			name = strings.NewReplacer("\n", " ", "\r", "", `\`, "").Replace(name)
			quote := "'"
			if strings.Contains(name, quote) {
				quote, name = `"`, strings.ReplaceAll(name, `"`, "")
			}
			return FieldsVariable + "[" + quote + name + quote + "]"
		}
		switch {
		case conditional:
			b.WriteString("{{ " + read(name+presentSuffix) + lines + " }}{% if " + read(name+yesSuffix) + " %}")
			verbatim(&b, text, true)
			b.WriteString("{% endif %}")
		default:
			b.WriteString("{{ " + read(name) + lines + " }}")
		}
		at = found[1]
	}
	verbatim(&b, source[at:], false)
	return b.String()
}

// verbatim writes text so that Liquid takes it for text. before says that Liquid
// follows.
func verbatim(b *strings.Builder, text string, before bool) {
	for i := range len(text) {
		if text[i] == '{' && (i+1 == len(text) && before || i+1 < len(text) && (text[i+1] == '{' || text[i+1] == '%')) {
			b.WriteString(`{{ "{" }}`)
			continue
		}
		b.WriteByte(text[i])
	}
}

// FieldsVariable is what templates in the syntax of Notify read: the fields of the
// recipient's own data and those of the event, by names that ignore how they are
// spelled.
const FieldsVariable = "fanfare_fields"

// What follows a name that is ifThere about: whether it is there, which writes nothing,
// and whether it says yes.
const (
	presentSuffix = "!"
	yesSuffix     = "??"
)

// Fields are those that one recipient's message has.
type Fields struct {
	own, event map[string]any // by plainName
	link       string
}

// UnsubscribeField is the name of the link.
const UnsubscribeField = "unsubscribeurl"

// NewFields takes the fields of two objects; what is no object has none.
func NewFields(own, event map[string]any, link string) *Fields {
	return &Fields{own: own, event: event, link: link}
}

// AddStandIn gives the recipient a field that a template reads, unless the event has it.
func (f *Fields) AddStandIn(field string, value any) {
	if name := FieldName(field); f.event[name] == nil && name != UnsubscribeField {
		f.own[name] = value
	}
}

// PlainNames are the members of an object by their plain names.
func PlainNames(object any) map[string]any {
	members, _ := object.(map[string]any)
	plain := make(map[string]any, len(members))
	for name, value := range members {
		plain[PlainName(name)] = value
	}
	return plain
}

// PlainName is a name without what Notify ignores in it.
func PlainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// FieldName is the plain name of a field that a path reads.
func FieldName(name string) string {
	return PlainName(strings.TrimSuffix(strings.TrimSuffix(name, presentSuffix), yesSuffix))
}

// step returns a field as a template puts it out. A null is missing.
func (f *Fields) step(name string) (any, bool) {
	key := FieldName(name)
	value, ok := f.own[key]
	if !ok || value == nil {
		value, ok = f.event[key]
	}
	if key == UnsubscribeField && value == nil {
		value, ok = f.link, true
	}
	switch {
	case !ok || value == nil:
		return nil, false
	case strings.HasSuffix(name, yesSuffix):
		return isYes(value), true
	case strings.HasSuffix(name, presentSuffix):
		return "", true
	}
	if list, ok := value.([]any); ok {
		return joinAsSentence(list), true
	}
	return value, true
}

// isYes knows the words that Notify takes for a yes.
func isYes(value any) bool {
	switch strings.ToLower(string(AppendValue(nil, value, Plain))) {
	case "yes", "y", "true", "t", "1", "include", "show":
		return true
	}
	return false
}

// joinAsSentence joins what is in a list: a, b and c.
func joinAsSentence(list []any) string {
	var all []string
	for _, one := range list {
		if text := strings.TrimSpace(string(AppendValue(nil, one, Plain))); text != "" {
			all = append(all, text)
		}
	}
	if n := len(all); n > 1 {
		return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	return strings.Join(all, "")
}
