package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OfName turns a name without a title into words: road-closures into "Road closures".
func OfName(name string) string {
	text := strings.Join(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-. ", r) }), " ")
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
