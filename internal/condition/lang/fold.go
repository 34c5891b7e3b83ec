package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold maps s to the form in which contains_ci and starts_with_ci compare texts. It is Unicode
// simple case folding (statuses C and S of CaseFolding.txt, version unicode.Version), rune by rune.
// It is the same in every locale and never changes the number of runes.
//
// So k, K and the Kelvin sign are equal, as are σ, Σ and final ς, ß and ẞ, s and long ſ. A
// character whose folding needs more than one rune stays different: ß is not ss, and İ (capital I
// with dot) equals neither i nor I. Fold does not normalise: é as one rune is not e with a
// combining accent.
func Fold(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return s[:i] + strings.Map(foldRune, s[i:])
		}
	}
	return s
}

// foldRune returns the representative of all runes that fold together with r: the lower-case one
// if one of them is ASCII, else the smallest.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}

// ContainsFolded is contains_ci on folded texts: false if either is empty.
func ContainsFolded(text, part string) bool {
	return text != "" && part != "" && strings.Contains(text, part)
}

// HasFoldedPrefix is starts_with_ci on folded texts: false if either is empty.
func HasFoldedPrefix(text, part string) bool {
	return text != "" && part != "" && strings.HasPrefix(text, part)
}
