package bodies

import (
	"slices"
	"strings"
)

// An element is one that is open where the HTML is read.
type element struct {
	name, id string
	classes  []string
}

// A selector is a chain of compounds: the last is of the element itself, those
// before it of elements around it.
type selector struct {
	parts       []compound
	specificity int
}

// A compound says what one element is: td.card#first.
type compound struct {
	name, id string
	classes  []string
	child    bool // it stands directly in what the compound before says
}

// parseSelector reads names, classes and ids, within and directly in (>) one
// another. All else is not known before the mail is read, or to few readers.
func parseSelector(text string) (s selector, ok bool) {
	child := false
	for field := range strings.FieldsSeq(strings.ReplaceAll(text, ">", " > ")) {
		if field == ">" {
			if child || len(s.parts) == 0 {
				return s, false
			}
			child = true
			continue
		}
		c := compound{child: child}
		child = false
		for field != "" {
			end := strings.IndexAny(field[1:], ".#")
			word := field
			if end >= 0 {
				word, field = field[:end+1], field[end+1:]
			} else {
				field = ""
			}
			name := strings.TrimLeft(word, ".#")
			if len(word)-len(name) > 1 || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < 0x80 && !nameRune(r) }) && word != "*" {
				return s, false
			}
			switch word[0] {
			case '.':
				c.classes = append(c.classes, name)
				s.specificity += 100
			case '#':
				c.id = name
				s.specificity += 10000
			case '*':
			default:
				c.name = strings.ToLower(name)
				s.specificity++
			}
		}
		s.parts = append(s.parts, c)
	}
	return s, len(s.parts) > 0 && !child
}

func nameRune(r rune) bool {
	return r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func (c *compound) is(e element) bool {
	if c.name != "" && c.name != e.name || c.id != "" && c.id != e.id {
		return false
	}
	for _, class := range c.classes {
		if !slices.Contains(e.classes, class) {
			return false
		}
	}
	return true
}

// matches reports whether the selector is of the last of open, the elements that
// stand in one another.
func (s *selector) matches(open []element) bool {
	return reaches(s.parts, open)
}

func reaches(parts []compound, open []element) bool {
	n, last := len(open)-1, len(parts)-1
	if n < 0 || !parts[last].is(open[n]) {
		return false
	}
	if last == 0 {
		return true
	}
	if parts[last].child {
		return reaches(parts[:last], open[:n])
	}
	for ; n > 0; n-- {
		if reaches(parts[:last], open[:n]) {
			return true
		}
	}
	return false
}
