package reply

import (
	"strconv"
	"strings"
)

// A Span is a range of numbers, both ends included.
type Span struct{ From, To int }

func (s Span) has(n int) bool { return s.From <= n && n <= s.To }

// String returns the span as in a rule: 450, or 450-459.
func (s Span) String() string {
	if s.From == s.To {
		return strconv.Itoa(s.From)
	}
	return strconv.Itoa(s.From) + "-" + strconv.Itoa(s.To)
}

const anyNumber = 999

// readSpan parses 450, 450-459 or, with wild, *.
func readSpan(text string, wild bool) (Span, bool) {
	if wild && text == "*" {
		return Span{0, anyNumber}, true
	}
	from, to, run := strings.Cut(text, "-")
	if !run {
		to = from
	}
	s := Span{number(from), number(to)}
	return s, s.From >= 0 && s.To >= s.From
}

// number parses a number of up to three digits; it returns -1 for any other text.
func number(text string) int {
	if len(text) == 0 || len(text) > 3 {
		return -1
	}
	n := 0
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// enhanced is an enhanced status code, class.subject.detail (RFC 3463, section 2); all zeros if
// there is none.
type enhanced [3]int

// enhancedIn returns the first enhanced status code in a text that is not part of something
// longer, such as an IP address.
func enhancedIn(text string) (e enhanced) {
	for start := 0; start < len(text); {
		end := start
		for end < len(text) && (text[end] == '.' || '0' <= text[end] && text[end] <= '9') {
			end++
		}
		if e, ok := readEnhanced(strings.TrimSuffix(text[start:end], ".")); ok {
			return e
		}
		start = end + 1
	}
	return enhanced{}
}

func readEnhanced(text string) (e enhanced, ok bool) {
	if len(text) < len("2.0.0") || text[1] != '.' || text[0] != '2' && text[0] != '4' && text[0] != '5' {
		return e, false
	}
	subject, detail, _ := strings.Cut(text[2:], ".")
	e = enhanced{int(text[0] - '0'), number(subject), number(detail)}
	return e, e[1] >= 0 && e[2] >= 0
}

// A Pattern matches enhanced status codes. Each part is a number, a range or a star, as in 4.7.28,
// *.2.2 or 4.7.500-699.
type Pattern [3]Span

func (p Pattern) fits(e enhanced) bool {
	return e[0] > 0 && p[0].has(e[0]) && p[1].has(e[1]) && p[2].has(e[2])
}

// String returns the pattern as in a rule.
func (p Pattern) String() string {
	var parts [3]string
	for i, s := range p {
		if parts[i] = s.String(); s == (Span{0, anyNumber}) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts[:], ".")
}

func readPattern(text string) (p Pattern, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != len(p) {
		return p, false
	}
	for i, part := range parts {
		if p[i], ok = readSpan(part, true); !ok {
			return p, false
		}
	}
	return p, true
}
