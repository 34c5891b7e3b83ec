package lang

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold maps s to the form in which contains_ci and starts_with_ci compare. It
// is Unicode simple case folding (statuses C and S of CaseFolding.txt, version
// unicode.Version), rune by rune: the same for needle and haystack, the same in
// every locale, and never changing the number of runes.
//
// So k, K and the Kelvin sign are equal, as are σ, Σ and final ς, ß and ẞ, s
// and long ſ. What needs more than one rune to fold keeps its own identity: ß
// is not ss, and İ (capital I with dot) equals neither i nor I. Nothing is
// normalised: é as one rune is not e with a combining accent.
func Fold(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return s[:i] + strings.Map(foldRune, s[i:])
		}
	}
	return s
}

// foldRune returns the representative of all runes that r folds together with:
// the lower-case letter where one of them is ASCII, else the smallest.
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

// ContainsFolded is contains_ci on folded text: false where either is empty.
func ContainsFolded(hay, needle string) bool {
	return hay != "" && needle != "" && strings.Contains(hay, needle)
}

// HasFoldedPrefix is starts_with_ci on folded text: false where either is empty.
func HasFoldedPrefix(hay, needle string) bool {
	return hay != "" && needle != "" && strings.HasPrefix(hay, needle)
}
