package locale

import (
	"strconv"
	"strings"
)

// A Decimal is a number as it is written: 1.50 is not 1.5.
type Decimal struct {
	negative bool
	whole    string // without leading zeros; "0" for none
	fraction string
}

// maxDigits is how long a number may be that is written.
const maxDigits = 64

// ParseDecimal reads a number such as -12.50 or 1e6.
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

// Round gives the number at least and at most so many digits behind the point; half
// goes to the even digit, as CLDR has it.
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
