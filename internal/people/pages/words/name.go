package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OfName makes words of a name, such as "Road closures" of road-closures, for what has
// no title.
func OfName(name string) string {
	text := strings.Join(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-. ", r) }), " ")
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
