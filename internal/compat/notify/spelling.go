package notify

import "strings"

// anyDigit stands for a digit in a spelling.
const anyDigit = '#'

// spellingOf returns how a phone number was spelled, without the number: anyDigit stands for each digit that ends the
// normal form. It returns "" if the number was spelled in its normal form.
func spellingOf(sent, normal string) string {
	if sent == normal {
		return ""
	}
	runes := []rune(sent)
	at := len(normal)
	for i := len(runes) - 1; i >= 0; i-- {
		if r := runes[i]; r >= '0' && r <= '9' {
			if at == 0 || rune(normal[at-1]) != r {
				break
			}
			at--
			runes[i] = anyDigit
		}
	}
	return string(runes)
}

// spelled returns a phone number in a spelling.
func spelled(spelling, normal string) string {
	if spelling == "" || normal == "" {
		return normal
	}
	n := strings.Count(spelling, string(anyDigit))
	if n > len(normal) {
		return normal
	}
	digits := normal[len(normal)-n:]
	return strings.Map(func(r rune) rune {
		if r != anyDigit {
			return r
		}
		next := digits[0]
		digits = digits[1:]
		return rune(next)
	}, spelling)
}
