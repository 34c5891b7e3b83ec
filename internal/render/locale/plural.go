package locale

import (
	"strconv"
	"strings"
)

// PluralForms are the names of plural forms. Every language has other, and some of the others.
func PluralForms() []string { return []string{"zero", "one", "two", "few", "many", "other"} }

// A rule lists the alternatives of a plural form. A number takes the form if all conditions of
// one alternative hold (UTS 35, part 3, section 5).
type rule struct {
	form         string
	alternatives [][]condition
}

// A condition is, for example, i % 10 != 2..4,7.
type condition struct {
	operand byte
	modulus int // 0: none
	not     bool
	ranges  [][2]int
}

// PluralForms returns the plural forms of the language, in the order of the function
// PluralForms.
func (l *Locale) PluralForms() []string {
	var has []string
	for _, form := range PluralForms() {
		for _, r := range l.plural {
			if r.form == form {
				has = append(has, form)
			}
		}
	}
	return append(has, "other")
}

// Plural returns the plural form for a number.
func (l *Locale) Plural(d Decimal) string {
	for _, r := range l.plural {
		for _, all := range r.alternatives {
			if allHold(all, d) {
				return r.form
			}
		}
	}
	return "other"
}

func allHold(all []condition, d Decimal) bool {
	for _, c := range all {
		if c.holds(d) == c.not {
			return false
		}
	}
	return true
}

func (c condition) holds(d Decimal) bool {
	value, whole := d.operand(c.operand)
	if !whole {
		return false // n with a fraction is in no range
	}
	if c.modulus > 0 {
		value %= c.modulus
	}
	for _, r := range c.ranges {
		if value >= r[0] && value <= r[1] {
			return true
		}
	}
	return false
}

// operand returns the value of an operand.
func (d Decimal) operand(name byte) (value int, whole bool) {
	short := strings.TrimRight(d.fraction, "0")
	switch name {
	case 'n', 'i':
		return lastDigits(d.whole), name == 'i' || short == ""
	case 'v':
		return len(d.fraction), true
	case 'w':
		return len(short), true
	case 'f':
		return lastDigits(d.fraction), true
	case 't':
		return lastDigits(short), true
	}
	return 0, true // c and e: no number is written as 1.2 million
}

// lastDigits returns the number of the last 15 digits, plus 1e15 if there are more: rules need
// at most seven digits, and equality.
func lastDigits(s string) int {
	const most = 15
	if len(s) <= most {
		n, _ := strconv.Atoi(s)
		return n
	}
	n, _ := strconv.Atoi(s[len(s)-most:])
	return n + 1e15
}

// parseRules parses "one: i = 1 and v = 0; few: ...".
func parseRules(text string) []rule {
	var rules []rule
	for part := range strings.SplitSeq(text, "; ") {
		form, conditions, ok := strings.Cut(part, ": ")
		if !ok {
			continue // a language with one form
		}
		r := rule{form: form}
		for alternative := range strings.SplitSeq(conditions, " or ") {
			var all []condition
			for one := range strings.SplitSeq(alternative, " and ") {
				all = append(all, parseCondition(one))
			}
			r.alternatives = append(r.alternatives, all)
		}
		rules = append(rules, r)
	}
	return rules
}

func parseCondition(text string) condition {
	var c condition
	words := strings.Fields(text)
	c.operand = words[0][0]
	for i, word := range words[1:] {
		switch word {
		case "%":
			c.modulus, _ = strconv.Atoi(words[i+2])
		case "!=", "=":
			c.not = word == "!="
			for span := range strings.SplitSeq(words[i+2], ",") {
				from, to, wide := strings.Cut(span, "..")
				if !wide {
					to = from
				}
				a, _ := strconv.Atoi(from)
				b, _ := strconv.Atoi(to)
				c.ranges = append(c.ranges, [2]int{a, b})
			}
		}
	}
	return c
}
