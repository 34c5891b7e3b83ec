package notifytext

import (
	"regexp"
	"strings"
)

var (
	// anyURL matches an address with a scheme, or one that mail programs turn into a link.
	anyURL = regexp.MustCompile(`(?i)\b(?:[a-z][a-z0-9+.-]*://|www\.|mailto:)[^\s<>]*`)
	// domainDot matches the dot of a text that only looks like a domain: a.b.
	domainDot = regexp.MustCompile(`([\pL\pN_-])\.([\pL_-])`)
	// orderedStart matches the beginning of an item of a numbered list.
	orderedStart = regexp.MustCompile(`(?m)^([ \t]*\d+)\.`)
)

// escapes puts a backslash before each character that Markdown gives a meaning.
var escapes = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`,
	"#", `\#`, "+", `\+`, "-", `\-`, "!", `\!`, "|", `\|`, "~", `\~`, "^", `\^`, "<", `\<`, ">", `\>`, "•", `\•`)

// Sanitise returns a value without markup: addresses are removed, what looks like a domain gets
// a space after each dot, and the characters of Markdown are escaped.
func Sanitise(value string) string {
	value = anyURL.ReplaceAllString(clean(value), "")
	for domainDot.MatchString(value) { // a character after a dot may also be before one
		value = domainDot.ReplaceAllString(value, "$1. $2")
	}
	value = orderedStart.ReplaceAllString(escapes.Replace(value), `$1\.`)
	return value
}
