package evaluator

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// fold replaces each rune with the smallest of the runes that are equal to it under Unicode's simple
// case folding (CaseFolding.txt, statuses C and S).
func fold(text string) string {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || c >= 'a' && c <= 'z' {
			return text[:i] + strings.Map(foldRune, text[i:])
		}
	}
	return text
}

func foldRune(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r - 'a' + 'A'
	}
	if r < utf8.RuneSelf {
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}
