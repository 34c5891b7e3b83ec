package address

import (
	"strings"

	"fanfare.dev/fanfare"
)

// The digits of a telephone number with its country code (ITU-T E.164, section 6.2.1). Shorter
// numbers exist only within a country.
const (
	minPhoneDigits = 8
	maxPhoneDigits = 15
)

// ukCode is the country code of the numbers that are written in national form.
const ukCode = "44"

// ParsePhone checks a telephone number and returns it in the form of E.164: a plus sign and up to
// 15 digits, such as +447700900123. The number may contain spaces, brackets, hyphens and dots. It
// begins with + or 00 and the country code, or with the country code alone; a number that begins
// with a single 0, or with 7 and has ten digits, is in the national form of the United Kingdom.
// The error is a *fanfare.Error without a pointer.
func ParsePhone(s string) (normal string, err error) {
	digits, wrong := phoneDigits(s)
	if wrong == "" {
		switch {
		case len(digits) < minPhoneDigits:
			wrong = "it has too few digits"
		case len(digits) > maxPhoneDigits:
			wrong = "it has more than 15 digits"
		case digits[0] == '0':
			wrong = "no country code begins with 0"
		}
	}
	if wrong != "" {
		return "", &fanfare.Error{Code: fanfare.Invalid, Message: "the address is not a telephone number: " + wrong, Hint: "write it with the country code, such as +44 7700 900123"}
	}
	return "+" + digits, nil
}

// phoneDigits returns the country code and the digits that follow it.
func phoneDigits(s string) (digits, wrong string) {
	if len(s) > maxAddressBytes {
		return "", "it is too long"
	}
	var b strings.Builder
	plus := false
	for _, r := range s {
		switch {
		case '0' <= r && r <= '9':
			b.WriteRune(r)
		case r == '+':
			if plus || b.Len() > 0 {
				return "", "it has a plus sign that is not at the beginning"
			}
			plus = true
		case strings.ContainsRune(" \u00a0()-./", r):
		default:
			return "", "it contains other characters than digits, spaces and +()-./"
		}
	}
	digits = b.String()
	switch {
	case plus:
	case strings.HasPrefix(digits, "00"):
		digits = digits[2:]
	case strings.HasPrefix(digits, "0"):
		return ukCode + strings.TrimLeft(digits, "0"), ""
	case strings.HasPrefix(digits, "7") && len(digits) == 10:
		return ukCode + digits, ""
	}
	if rest, ok := strings.CutPrefix(digits, ukCode); ok { // +44 (0) 7700 900123
		return ukCode + strings.TrimLeft(rest, "0"), ""
	}
	return digits, ""
}
