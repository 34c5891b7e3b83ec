package bodies

import (
	"slices"
	"strings"
	"unicode"

	eastasian "golang.org/x/text/width"
)

// Columns counts the columns that a text takes on a terminal, those of its longest
// line: two for the wide characters of East Asia and for most emoji (Unicode Standard
// Annex 11), none for combining and invisible ones.
func Columns(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		n := 0
		for _, r := range line {
			n += runeColumns(r)
		}
		most = max(most, n)
	}
	return most
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc) {
		return 0
	}
	switch eastasian.LookupRune(r).Kind() {
	case eastasian.EastAsianWide, eastasian.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Underline returns a line of signs that is as wide as the text, and at most as wide as
// a line may be.
func Underline(text, sign string) string {
	return strings.Repeat(sign, min(Columns(text), columns))
}

// heading writes the words at hand, a line of signs below them, and then the addresses
// of its links, which would make the heading hard to read.
func (w *writer) heading(sign string) {
	w.inHeading = false
	most, taken := columns-w.indented(), 0
	for i, part := range w.words {
		taken += part.width
		if i > 0 && !part.tight {
			taken++
		}
	}
	if taken == 0 {
		return
	}
	below := strings.Repeat(sign, min(taken, most))
	if exact, ok := w.b.underline(w.joined(), sign); ok && taken <= most && !slices.ContainsFunc(w.words, isBreak) {
		below = exact
	}
	w.flush()
	w.line(below)
	for _, address := range w.below {
		w.line(address)
	}
	w.below = nil
}

func isBreak(part word) bool { return part.text == brk }

// underline is the line below a heading of one line: signs where the heading has text,
// each value with a filter that makes as many signs of it as it has columns, and the
// same conditions. It reports false where a tag must not run twice.
func (b *builder) underline(line, sign string) (string, bool) {
	var out strings.Builder
	from := 0
	for _, at := range b.word.FindAllStringIndex(line, -1) {
		out.WriteString(strings.Repeat(sign, Columns(line[from:at[0]])))
		from = at[1]
		m := *b.at(line[at[0]:at[1]])
		switch m.tag {
		case "":
			if m.source = underlined(m.source, sign); m.source == "" {
				return "", false
			}
		case "if", "unless", "case", "when", "elsif", "else", "endif", "endunless", "endcase", "for", "endfor", "comment":
		default:
			return "", false
		}
		out.WriteString(b.add(m))
	}
	out.WriteString(strings.Repeat(sign, Columns(line[from:])))
	return out.String(), true
}

// underlined is an output whose value is underlined; "" for what is no output.
func underlined(source, sign string) string {
	inner, ok := strings.CutSuffix(source, "}}")
	if !ok {
		return ""
	}
	trimmed := strings.TrimSuffix(inner, "-")
	return strings.TrimRight(trimmed, " \t\n") + ` | underline: "` + sign + `" ` + inner[len(trimmed):] + "}}"
}
