package locale

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// numbers has the symbols and patterns of one system of digits.
type numbers struct {
	decimal, group, minus        string
	standard, currency, spaced   string // patterns; spaced is for a currency that is written as a word
	currencyDecimal, currencyGap string // of amounts; "": those of numbers
}

func (l *Locale) takeNumbers(raw map[string]json.RawMessage) {
	var of []string
	if json.Unmarshal(raw["numbers."+l.data.Digits], &of) == nil && len(of) == 8 {
		l.numbers = numbers{of[0], of[1], of[2], of[3], of[4], of[5], of[6], of[7]}
	}
	for name, value := range raw {
		if code, ok := strings.CutPrefix(name, "currency."); ok {
			var symbol string
			if json.Unmarshal(value, &symbol) == nil {
				l.symbols[code] = symbol
			}
		}
	}
}

// maxFraction is the default maximum of decimals.
const maxFraction = 3

// Number writes a number with at most three decimals.
func (l *Locale) Number(d Decimal) string { return l.fixed(d.Round(0, maxFraction)) }

// Fixed writes a number with exactly so many decimals.
func (l *Locale) Fixed(d Decimal, digits int) string { return l.fixed(d.Round(digits, digits)) }

func (l *Locale) fixed(d Decimal) string {
	n := &l.numbers
	return l.fill(n.standard, d, n.decimal, n.group, "")
}

// CurrencyDigits returns the usual number of decimals of a currency.
func CurrencyDigits(currency string) int {
	if text, ok := dataLine(rulesText, "fraction "+currency); ok {
		digits, _ := strconv.Atoi(text)
		return digits
	}
	return 2
}

// Money writes an amount in a currency (ISO 4217) with so many decimals.
func (l *Locale) Money(d Decimal, currency string, digits int) string {
	symbol := l.symbols[currency]
	if symbol == "" {
		symbol = currency
	}
	n := &l.numbers
	pattern, decimal, group := n.currency, n.decimal, n.group
	if before, _, _ := strings.Cut(pattern, ";"); touchesWord(before, symbol) {
		pattern = n.spaced
	}
	if n.currencyDecimal != "" {
		decimal = n.currencyDecimal
	}
	if n.currencyGap != "" {
		group = n.currencyGap
	}
	return l.fill(pattern, d.Round(digits, digits), decimal, group, symbol)
}

// touchesWord reports whether a symbol made of words, such as "kr", would stand next to the number.
func touchesWord(pattern, symbol string) bool {
	r, _ := utf8.DecodeRuneInString(symbol)
	if i := strings.Index(pattern, "¤"); i >= 0 && i < strings.IndexAny(pattern, "#0") {
		r, _ = utf8.DecodeLastRuneInString(symbol)
	}
	return unicode.IsLetter(r)
}

// fill writes a number by a pattern such as #,##,##0.00 ¤.
func (l *Locale) fill(pattern string, d Decimal, decimal, group, symbol string) string {
	positive, negative, own := strings.Cut(pattern, ";")
	minus := ""
	if d.negative {
		if own {
			positive = negative
		} else {
			minus = l.numbers.minus
		}
	}
	from := strings.IndexAny(positive, "#0")
	to := strings.LastIndexAny(positive, "#0") + 1
	var b strings.Builder
	affix := func(text string) {
		b.WriteString(strings.NewReplacer("¤", symbol, "-", l.numbers.minus, "'", "").Replace(text))
	}
	b.WriteString(minus)
	affix(positive[:from])
	first, others := groups(positive[from:to])
	for i := range len(d.whole) {
		left := len(d.whole) - i
		if i > 0 && first > 0 && len(d.whole) >= first+l.data.Grouping && left >= first && (left-first)%others == 0 {
			b.WriteString(group)
		}
		l.writeDigits(&b, d.whole[i:i+1])
	}
	if d.fraction != "" {
		b.WriteString(decimal)
		l.writeDigits(&b, d.fraction)
	}
	affix(positive[to:])
	return b.String()
}

// groups returns the sizes of the last group and of the other groups of a pattern.
func groups(pattern string) (first, others int) {
	pattern, _, _ = strings.Cut(pattern, ".")
	parts := strings.Split(pattern, ",")
	if len(parts) == 1 {
		return 0, 0
	}
	first = len(parts[len(parts)-1])
	if others = first; len(parts) > 2 {
		others = len(parts[len(parts)-2])
	}
	return first, others
}

// writeDigits writes digits in the system of the locale.
func (l *Locale) writeDigits(b *strings.Builder, digits string) {
	if l.digits == "" {
		b.WriteString(digits)
		return
	}
	own := []rune(l.digits)
	for i := range len(digits) {
		b.WriteRune(own[digits[i]-'0'])
	}
}

// A Decimal is a number with its written decimals: 1.50 is not 1.5.
type Decimal struct {
	negative bool
	whole    string // without leading zeros; "0" for none
	fraction string
}

// maxDigits is the longest number.
const maxDigits = 64

// ParseDecimal parses a number such as -12.50 or 1e6.
func ParseDecimal(s string) (Decimal, bool) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "eE") && !strings.ContainsAny(s, "xXpPnN_") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return Decimal{}, false
		}
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	var d Decimal
	s, d.negative = strings.CutPrefix(s, "-")
	var dot bool
	d.whole, d.fraction, dot = strings.Cut(s, ".")
	if d.whole == "" || dot && d.fraction == "" || len(s) > maxDigits || strings.Trim(d.whole+d.fraction, "0123456789") != "" {
		return Decimal{}, false
	}
	if d.whole = strings.TrimLeft(d.whole, "0"); d.whole == "" {
		d.whole = "0"
	}
	return d, true
}

// Round rounds to at least and at most so many decimals, half to even as CLDR defines.
func (d Decimal) Round(least, most int) Decimal {
	if n := len(d.fraction); n > most {
		digits := []byte(d.whole + d.fraction[:most])
		next, rest := d.fraction[most], strings.Trim(d.fraction[most+1:], "0")
		up := next > '5' || next == '5' && (rest != "" || digits[len(digits)-1]%2 == 1)
		for i := len(digits) - 1; up; i-- {
			if i < 0 {
				digits = append([]byte{'1'}, digits...)
				break
			}
			if digits[i]++; digits[i] <= '9' {
				break
			}
			digits[i] = '0'
		}
		point := len(digits) - most
		d.whole, d.fraction = string(digits[:point]), string(digits[point:])
	}
	for len(d.fraction) > least && d.fraction[len(d.fraction)-1] == '0' {
		d.fraction = d.fraction[:len(d.fraction)-1]
	}
	if n := least - len(d.fraction); n > 0 {
		d.fraction += strings.Repeat("0", n)
	}
	return d
}
