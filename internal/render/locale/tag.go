package locale

import (
	"iter"
	"strings"
)

// Normal spells a language tag as BCP 47 recommends: zh-Hant-TW.
func Normal(tag string) string {
	parts := strings.FieldsFunc(tag, func(r rune) bool { return r == '-' || r == '_' })
	extension := false
	for i, p := range parts {
		p = strings.ToLower(p)
		switch {
		case i == 0 || extension || len(p) == 1:
			extension = extension || len(p) == 1
		case len(p) == 2:
			p = strings.ToUpper(p)
		case len(p) == 4 && (p[0] < '0' || p[0] > '9'):
			p = strings.ToUpper(p[:1]) + p[1:]
		}
		parts[i] = p
	}
	return strings.Join(parts, "-")
}

// Lookup goes from a tag to those that are less exact, as RFC 4647, section 3.4,
// does: zh-Hant-TW, zh-Hant, zh.
func Lookup(tag string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for tag != "" && yield(tag) {
			i := strings.LastIndexByte(tag, '-')
			if i < 0 {
				return
			}
			tag = tag[:i]
			if n := len(tag); n > 2 && tag[n-2] == '-' { // what a single letter begins
				tag = tag[:n-2]
			}
		}
	}
}

// Language is the first part of a tag.
func Language(tag string) string {
	language, _, _ := strings.Cut(Normal(tag), "-")
	return language
}
