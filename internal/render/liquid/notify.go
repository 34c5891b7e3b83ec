package liquid

import (
	"strings"

	osteele "github.com/osteele/liquid"

	"fanfare.dev/fanfare/internal/render/notifytext"
)

// SyntaxNotify is the syntax of GOV.UK Notify: ((name)) is a field of the recipient's own data
// or else of the event, and ((flag??text)) is the text if the field flag says yes. Names ignore
// case, spaces, - and _. Everything else is text, Liquid included.
const SyntaxNotify = "notify"

// FromNotify converts a text to Liquid.
func FromNotify(source string) string {
	var b strings.Builder
	at := 0
	for _, found := range notifytext.Pattern.FindAllStringSubmatchIndex(source, -1) {
		verbatim(&b, source[at:found[0]], true)
		name, text, conditional := strings.Cut(source[found[2]:found[3]], "??")
		lines := strings.Repeat("\n", strings.Count(name, "\n"))
		switch {
		case conditional:
			b.WriteString("{{ " + readField(name+presentSuffix) + lines + " }}{% if " + readField(name+yesSuffix) + " %}")
			verbatim(&b, text, true)
			b.WriteString("{% endif %}")
		default:
			b.WriteString("{{ " + readField(name) + lines + " }}")
		}
		at = found[1]
	}
	verbatim(&b, source[at:], false)
	return b.String()
}

// readField returns the path of a field.
func readField(name string) string {
	name = strings.NewReplacer("\n", " ", "\r", "", `\`, "").Replace(name)
	quote := "'"
	if strings.Contains(name, quote) {
		quote, name = `"`, strings.ReplaceAll(name, `"`, "")
	}
	return FieldsVariable + "[" + quote + name + quote + "]"
}

// NotifyContent is what package notifytext writes of a template: outputs of Liquid with the
// filter of NotifyOutput contain it.
type NotifyContent struct {
	Subject *notifytext.Text
	Body    *notifytext.Body
	SMS     *notifytext.Text
}

// Kinds of content that NotifyOutput writes.
const (
	NotifySubject   = "subject"
	NotifyHTML      = "html"
	NotifyPlain     = "text"
	NotifyPreheader = "preheader"
	NotifySMS       = "sms"
)

// notifyFilter writes content of a kind: fields | notify: kind. Only the compiler inserts it.
const notifyFilter = "fanfare_notify"

// NotifyOutput returns the Liquid that writes content of a kind.
func NotifyOutput(kind string) string {
	output := "{{ " + FieldsVariable + " | " + notifyFilter + `: "` + kind + `" `
	if kind == NotifyHTML {
		output += "| raw "
	}
	return output + "}}"
}

// NotifyFields returns Liquid that has no output and reads all fields that a text reads, each in
// its line, so that a missing field is reported as in any other text.
func NotifyFields(source string) string {
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	var b strings.Builder
	at := 0
	seen := map[string]bool{}
	for _, found := range notifytext.Pattern.FindAllStringSubmatchIndex(source, -1) {
		b.WriteString(strings.Repeat("\n", strings.Count(source[at:found[0]], "\n")))
		name, _, _ := strings.Cut(source[found[2]:found[3]], "??")
		lines := strings.Repeat("\n", strings.Count(source[found[0]:found[1]], "\n"))
		if key := notifytext.Key(name); key != "" && !seen[key] {
			seen[key] = true
			b.WriteString("{{ " + readField(name+presentSuffix) + lines + " }}")
		} else {
			b.WriteString(lines)
		}
		at = found[1]
	}
	return b.String()
}

// registerNotify adds the filter that writes content.
func registerNotify(e *osteele.Engine, content *NotifyContent) {
	e.RegisterFilter(notifyFilter, func(of any, kind string) string {
		values := func(string) any { return nil }
		if fields, ok := of.(*Fields); ok {
			values = fields.value
		}
		switch kind {
		case NotifySubject:
			return content.Subject.Subject(values)
		case NotifyHTML:
			return content.Body.HTML(values)
		case NotifyPreheader:
			return content.Body.Preheader(values)
		case NotifySMS:
			return content.SMS.SMS(values)
		}
		return content.Body.Plain(values)
	})
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
func PlainName(name string) string { return notifytext.Key(name) }

// FieldName returns the plain name of the field that a path reads.
func FieldName(name string) string {
	return PlainName(strings.TrimSuffix(strings.TrimSuffix(name, presentSuffix), yesSuffix))
}

// value returns the value of a field by its plain name; nil if it has none.
func (f *Fields) value(key string) any {
	value := f.own[key]
	if value == nil {
		value = f.event[key]
	}
	if value == nil && key == UnsubscribeField {
		return f.link
	}
	return value
}

// step returns the value of a field for a template. Null counts as missing.
func (f *Fields) step(name string) (any, bool) {
	value := f.value(FieldName(name))
	switch {
	case value == nil:
		return nil, false
	case strings.HasSuffix(name, yesSuffix):
		return notifytext.SaysYes(value), true
	case strings.HasSuffix(name, presentSuffix):
		return "", true
	}
	if list, ok := value.([]any); ok {
		return notifytext.Format(list, false), true
	}
	return value, true
}
