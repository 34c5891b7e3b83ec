package locale

import (
	"strings"
	"time"
)

// A Style is the length of a date.
type Style uint8

// The styles, with examples.
const (
	Full   Style = iota // Sunday, 8 March 2026
	Long                // 8 March 2026
	Medium              // 8 Mar 2026
	Short               // 08/03/2026
)

// ParseStyle parses full, long, medium and short.
func ParseStyle(name string) (Style, bool) {
	for i, known := range []string{"full", "long", "medium", "short"} {
		if name == known {
			return Style(i), true
		}
	}
	return 0, false
}

// Date writes the date of t.
func (l *Locale) Date(t time.Time, style Style) string { return l.pattern(l.data.Dates[style], t) }

// Time writes the hour and minute of t.
func (l *Locale) Time(t time.Time) string { return l.pattern(l.data.Time, t) }

// DateTime writes the date, hour and minute of t.
func (l *Locale) DateTime(t time.Time, style Style) string {
	var b strings.Builder
	forEachField(l.data.Joined[style], func(field byte, n int, text string) {
		b.WriteString(text)
	})
	return strings.NewReplacer("{1}", l.Date(t, style), "{0}", l.Time(t)).Replace(b.String())
}

// pattern writes t by a pattern of UTS 35.
func (l *Locale) pattern(pattern string, t time.Time) string {
	var b strings.Builder
	forEachField(pattern, func(field byte, n int, text string) {
		switch field {
		case 0:
			b.WriteString(text)
		case 'y':
			year := t.Year()
			if n == 2 {
				year %= 100
			}
			l.writePadded(&b, year, n)
		case 'M', 'L':
			switch n {
			case 1, 2:
				l.writePadded(&b, int(t.Month()), n)
			case 3:
				b.WriteString(l.data.ShortMonths[t.Month()-1])
			default:
				b.WriteString(l.data.Months[t.Month()-1])
			}
		case 'd':
			l.writePadded(&b, t.Day(), n)
		case 'E', 'c':
			names := l.data.Days
			if n < 4 {
				names = l.data.ShortDays
			}
			b.WriteString(names[t.Weekday()])
		case 'H':
			l.writePadded(&b, t.Hour(), n)
		case 'h':
			l.writePadded(&b, (t.Hour()+11)%12+1, n)
		case 'm':
			l.writePadded(&b, t.Minute(), n)
		case 'a':
			b.WriteString(l.data.Halves[t.Hour()/12])
		case 'B':
			b.WriteString(l.data.Periods[t.Hour()])
		case 'G':
			b.WriteString(l.data.Era)
		}
	})
	return b.String()
}

// forEachField calls visit for the fields of a pattern, a character and its count, and for the
// text between them, with the field 0.
func forEachField(pattern string, visit func(field byte, n int, text string)) {
	for i := 0; i < len(pattern); {
		c := pattern[i]
		start := i
		switch {
		case c == '\'':
			end := strings.IndexByte(pattern[i+1:], '\'')
			if end < 0 {
				visit(0, 0, pattern[i+1:])
				return
			}
			if end == 0 {
				visit(0, 0, "'")
			} else {
				visit(0, 0, pattern[i+1:i+1+end])
			}
			i += end + 2
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			for i < len(pattern) && pattern[i] == c {
				i++
			}
			visit(c, i-start, "")
		default:
			for i < len(pattern) && pattern[i] != '\'' && (pattern[i]|0x20 < 'a' || pattern[i]|0x20 > 'z') {
				i++
			}
			visit(0, 0, pattern[start:i])
		}
	}
}

func (l *Locale) writePadded(b *strings.Builder, n, width int) {
	var digits [8]byte
	i := len(digits)
	for i--; ; i-- {
		digits[i] = byte('0' + n%10)
		width--
		if n /= 10; n == 0 && width <= 0 || i == 0 {
			break
		}
	}
	l.writeDigits(b, string(digits[i:]))
}
