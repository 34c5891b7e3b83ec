package notifytext

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Pattern matches a placeholder; its first group is what is between the brackets.
var Pattern = regexp.MustCompile(`\(\(([^()]+)\)\)`)

// A Placeholder is a name that a text reads.
type Placeholder struct {
	Name        string // as the text writes it first
	Conditional bool   // ((name??text)), at its first place
}

// Values returns the value of a placeholder by its key (see Key): a string, a number, a bool, a
// list, or nil if it has none.
type Values func(key string) any

// Map returns the values of an object, such as the personalisation of a request.
func Map(object map[string]any) Values {
	byKey := make(map[string]any, len(object))
	for name, value := range object {
		if key := Key(name); byKey[key] == nil {
			byKey[key] = value
		}
	}
	return func(key string) any { return byKey[key] }
}

// Key returns a name without what does not matter in it: case, white space, - and _.
func Key(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// A Text is a text with placeholders, read once.
type Text struct{ segments []segment }

// A segment is a piece of text, or a placeholder if it has a key.
type segment struct {
	text string // verbatim, or what a conditional placeholder shows
	key  string
	name string
	flag bool // the placeholder is conditional
}

// Parse reads a text. Every text is valid: what is not a placeholder is verbatim.
func Parse(source string) *Text {
	var t Text
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	at := 0
	for _, found := range Pattern.FindAllStringSubmatchIndex(source, -1) {
		name, text, flag := strings.Cut(source[found[2]:found[3]], "??")
		key := Key(name)
		if key == "" {
			continue
		}
		t.addText(source[at:found[0]])
		t.segments = append(t.segments, segment{text: text, key: key, name: strings.TrimSpace(name), flag: flag})
		at = found[1]
	}
	t.addText(source[at:])
	return &t
}

func (t *Text) addText(text string) {
	if text != "" {
		t.segments = append(t.segments, segment{text: text})
	}
}

// Placeholders returns the names that the texts read, each once, in order.
func Placeholders(texts ...*Text) []Placeholder {
	var all []Placeholder
	seen := map[string]bool{}
	for _, t := range texts {
		for _, s := range t.segments {
			if s.key != "" && !seen[s.key] {
				seen[s.key] = true
				all = append(all, Placeholder{Name: s.name, Conditional: s.flag})
			}
		}
	}
	return all
}

// Missing returns the names that the texts read and that have no value, in order. An empty
// string is a value, null is none.
func Missing(values Values, texts ...*Text) []string {
	var names []string
	for _, p := range Placeholders(texts...) {
		if values(Key(p.Name)) == nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// insert returns the text with the values.
func (t *Text) insert(values Values, bullets bool) string {
	var b strings.Builder
	for _, s := range t.segments {
		switch {
		case s.key == "":
			b.WriteString(s.text)
		case s.flag:
			if SaysYes(values(s.key)) {
				b.WriteString(s.text)
			}
		default:
			b.WriteString(Format(values(s.key), bullets))
		}
	}
	return b.String()
}

// SaysYes reports whether a value shows the text of a conditional placeholder.
func SaysYes(value any) bool {
	switch strings.ToLower(strings.TrimSpace(Format(value, false))) {
	case "yes", "y", "true", "t", "1", "include", "show":
		return true
	}
	return false
}

// Format returns the text of a value. A list becomes bullets or part of a sentence.
func Format(value any, bullets bool) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return clean(v)
	case bool:
		if v {
			return "True"
		}
		return "False"
	case json.Number:
		return string(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		if text, err := json.Marshal(v); err == nil {
			return string(text)
		}
	case []any:
		return formatList(v, bullets)
	case map[string]any:
		if text, err := json.Marshal(v); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(value)
}

func formatList(list []any, bullets bool) string {
	var members []string
	for _, one := range list {
		if text := strings.TrimSpace(Format(one, false)); text != "" {
			members = append(members, text)
		}
	}
	n := len(members)
	switch {
	case n == 0:
		return ""
	case bullets:
		return "\n\n* " + strings.Join(members, "\n* ")
	case n == 1:
		return members[0]
	}
	return strings.Join(members[:n-1], ", ") + " and " + members[n-1]
}

// clean returns a value with LF as line ends, and without characters that no text has.
func clean(value string) string {
	value = strings.ToValidUTF8(value, "\uFFFD")
	if strings.IndexFunc(value, isControl) < 0 {
		return value
	}
	value = strings.ReplaceAll(value, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case isControl(r):
			return -1
		}
		return r
	}, value)
}

// isControl reports whether clean changes a character.
func isControl(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7F }
