package searchfilter

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	iotaSubscript   = '\u0345' // a mark whose upper case is iota, no mark
	graphemeJoiner  = '\u034f' // package norm inserts it into long runs of marks
	maxFoldedRounds = 4
)

// A folder folds characters, and remembers what it has folded.
type folder struct {
	known map[rune][]rune
}

// maxKnown limits the characters that a folder remembers.
const maxKnown = 4096

// fold returns the characters that stand for one character. It returns none for a mark.
func (f *folder) fold(r rune) []rune {
	folded, ok := f.known[r]
	if !ok {
		if f.known == nil || len(f.known) >= maxKnown {
			f.known = map[rune][]rune{}
		}
		folded = foldRune(r, maxFoldedRounds)
		f.known[r] = folded
	}
	return folded
}

// foldRune decomposes a character and its lower and upper case until nothing changes.
func foldRune(r rune, rounds int) (folded []rune) {
	for _, part := range norm.NFKD.String(string(r)) {
		if part == graphemeJoiner || part != iotaSubscript && norm.NFKD.PropertiesString(string(part)).CCC() != 0 {
			continue
		}
		lower := unicode.ToLower(unicode.ToUpper(part)) // I is the upper case of the dotless i, too
		switch {
		case unicode.IsSpace(lower):
			folded = append(folded, ' ')
		case lower != part && rounds > 0:
			folded = append(folded, foldRune(lower, rounds-1)...)
		default:
			folded = append(folded, lower)
		}
	}
	return folded
}

// asciiFold is the fold of the characters of ASCII.
var asciiFold = func() (table [utf8.RuneSelf]rune) {
	for c := range table {
		table[c] = foldRune(rune(c), maxFoldedRounds)[0]
	}
	return table
}()

// each calls fn for each folded character of a text. Of several spaces it reports one. A byte that is not UTF-8 counts as U+FFFD.
func (f *folder) each(text string, fn func(r rune)) {
	space := false
	report := func(r rune) {
		if r == ' ' && space {
			return
		}
		space = r == ' '
		fn(r)
	}
	for _, r := range text {
		if r < utf8.RuneSelf {
			report(asciiFold[r])
			continue
		}
		for _, part := range f.fold(r) {
			report(part)
		}
	}
}
