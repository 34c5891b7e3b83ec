package notifytext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	spaceBeforePoint = regexp.MustCompile(`[ \t]+([,.])`)
	spacedDash       = regexp.MustCompile(`[ \t]+(?:-{1,3}|–|—)[ \t]+`)
	govUK            = regexp.MustCompile(`(?i)(^|[^\pL\pN@/._-])(gov)\.(uk)([^\pL\pN/?#@_-]|$)`)
	mailAddress      = regexp.MustCompile(`[^\s<>()"]+@[^\s<>()"]+\.[^\s<>()"]+`)
)

// setTypography gives the words of one block of text curly quotes and dashes. Addresses stay.
func setTypography(pieces []piece) {
	before := rune(' ')
	for i := range pieces {
		p := &pieces[i]
		switch p.kind {
		case words:
			p.text = spaceBeforePoint.ReplaceAllString(p.text, "$1")
			p.text = spacedDash.ReplaceAllString(p.text, " – ")
			p.text = unlinkGovUK(p.text)
			p.text, before = curlQuotes(p.text, before, firstRune(pieces[i+1:]))
		case address:
			before, _ = utf8.DecodeLastRuneInString(p.text)
		case lineBreak:
			before = '\n'
		}
	}
}

// unlinkGovUK puts a space without width into GOV.UK, so that mail programs make no link of it.
func unlinkGovUK(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return govUK.ReplaceAllString(text, "$1$2.\u200B$3$4")
}

// firstRune returns the first character of the pieces, or a space.
func firstRune(pieces []piece) rune {
	for _, p := range pieces {
		switch {
		case p.kind == lineBreak:
			return '\n'
		case p.text != "" && (p.kind == words || p.kind == address):
			r, _ := utf8.DecodeRuneInString(p.text)
			return r
		}
	}
	return ' '
}

// curlQuotes replaces straight quotes between the characters before and after the text, and
// returns the last character.
func curlQuotes(text string, before, after rune) (string, rune) {
	if text == "" {
		return text, before
	}
	if !strings.ContainsAny(text, `"'`) {
		last, _ := utf8.DecodeLastRuneInString(text)
		return text, last
	}
	var kept [][]int
	if strings.Contains(text, "@") {
		kept = mailAddress.FindAllStringIndex(text, -1)
	}
	var b strings.Builder
	for i, r := range text {
		for len(kept) > 0 && i >= kept[0][1] {
			kept = kept[1:]
		}
		next := after
		if i+utf8.RuneLen(r) < len(text) && r != utf8.RuneError {
			next, _ = utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
		}
		switch {
		case len(kept) > 0 && i >= kept[0][0]:
		case r == '"':
			r = '”'
			if opens(before) && !unicode.IsSpace(next) {
				r = '“'
			}
		case r == '\'':
			r = '’'
			if opens(before) && !unicode.IsSpace(next) && !isDecade(text[i+1:]) {
				r = '‘'
			}
		}
		b.WriteRune(r)
		before = r
	}
	return b.String(), before
}

// opens reports whether a quote after the character is an opening one.
func opens(before rune) bool {
	return unicode.IsSpace(before) || strings.ContainsRune("([{<-–—‘“/", before)
}

// isDecade recognises the abbreviation of a decade, which has an apostrophe: '90s.
func isDecade(text string) bool {
	return len(text) > 2 && text[0] >= '0' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9' && text[2] == 's'
}
