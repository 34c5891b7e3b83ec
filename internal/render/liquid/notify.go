package liquid

import (
	"regexp"
	"strings"
	"unicode"
)

// SyntaxNotify is the syntax of GOV.UK Notify: ((name)) is a field of the recipient's own data
// or else of the event, and ((flag??text)) is the text if the field flag says yes. Names ignore
// case, spaces, - and _. Everything else is text, Liquid included.
const SyntaxNotify = "notify"

// placeholder matches a placeholder of GOV.UK Notify.
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

// verbatim writes text so that Liquid outputs it unchanged; before tells that Liquid follows.
func verbatim(b *strings.Builder, text string, before bool) {
	for i := range len(text) {
		if text[i] == '{' && (i+1 == len(text) && before || i+1 < len(text) && (text[i+1] == '{' || text[i+1] == '%')) {
			b.WriteString(`{{ "{" }}`)
			continue
		}
		b.WriteByte(text[i])
	}
}

// FieldsVariable is the variable that templates in the syntax of GOV.UK Notify read: the fields
// of the recipient's own data and of the event, by plain name.
const FieldsVariable = "fanfare_fields"

// Suffixes of a field name: whether the field exists (the output is empty), and whether its
// value says yes.
const (
	presentSuffix = "!"
	yesSuffix     = "??"
)

// Fields are the fields of one recipient's message.
type Fields struct {
	own, event map[string]any // by plain name
	link       string
}

// UnsubscribeField is the plain name of the unsubscribe link.
const UnsubscribeField = "unsubscribeurl"

// NewFields returns the fields of the recipient's own data and of the event.
func NewFields(own, event map[string]any, link string) *Fields {
	return &Fields{own: own, event: event, link: link}
}

// AddStandIn gives the recipient a field that a template reads, unless the event has it.
func (f *Fields) AddStandIn(field string, value any) {
	if name := FieldName(field); f.event[name] == nil && name != UnsubscribeField {
		f.own[name] = value
	}
}

// PlainNames returns the members of an object by plain name.
func PlainNames(object any) map[string]any {
	members, _ := object.(map[string]any)
	plain := make(map[string]any, len(members))
	for name, value := range members {
		plain[PlainName(name)] = value
	}
	return plain
}

// PlainName returns a name without what GOV.UK Notify ignores.
func PlainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// FieldName returns the plain name of the field that a path reads.
func FieldName(name string) string {
	return PlainName(strings.TrimSuffix(strings.TrimSuffix(name, presentSuffix), yesSuffix))
}

// step returns the value of a field for a template. Null counts as missing.
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

// isYes knows the words that GOV.UK Notify takes for a yes.
func isYes(value any) bool {
	switch strings.ToLower(string(AppendValue(nil, value, Plain))) {
	case "yes", "y", "true", "t", "1", "include", "show":
		return true
	}
	return false
}

// joinAsSentence joins the elements of a list: a, b and c.
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
