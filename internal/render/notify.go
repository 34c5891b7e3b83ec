package render

import (
	"regexp"
	"strings"

	"fanfare.dev/fanfare"
)

// SyntaxNotify is the syntax of GOV.UK Notify: ((name)) is a field of the recipient's
// own data or else of the event's, and ((flag??text)) is the text if the field flag
// says yes. Names ignore case, spaces, - and _. Nothing else means anything: what
// Liquid would be is text.
const SyntaxNotify = "notify"

// placeholder is what Notify takes for one.
var placeholder = regexp.MustCompile(`\(\(([^()]+)\)\)`)

// liquid is the source in Liquid, line by line.
func (src Source) liquid(pointer func(string) string) (Source, *fanfare.Error) {
	switch src.Syntax {
	case "", "liquid":
		return src, nil
	case SyntaxNotify:
	default:
		err := invalid(0, "write liquid or notify", "unknown syntax %q", src.Syntax)
		err.Pointer = pointer("syntax")
		return src, err
	}
	for _, part := range []*string{&src.Subject, &src.Text, &src.HTML, &src.Markdown, &src.JSON} {
		*part = fromNotify(*part)
	}
	src.Syntax = ""
	return src, nil
}

func fromNotify(source string) string {
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
			return fieldsVariable + "[" + quote + name + quote + "]"
		}
		switch {
		case conditional:
			b.WriteString("{{ " + read(name+ifThere) + lines + " }}{% if " + read(name+ifYes) + " %}")
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
