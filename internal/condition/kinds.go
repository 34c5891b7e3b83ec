package condition

import (
	"fmt"

	"fanfare.dev/fanfare"
)

// A kind is a form or a term: filters that differ in their values alone are of one. An
// index leads to the filters of a kind, and an event asks each kind's; what a kind was
// compiled to is up to a hundred times as large as its text. So a topic has so many, and
// so much text of them: it is refused to take a filter on, and not to go on with it.
const (
	maxKinds     = 16 << 10
	maxKindBytes = 4 << 20
)

// kinds is how many conditions were compiled for the filters.
func (s *filters) kinds() int { return len(s.forms) + len(s.terms.list) }

// takes reports whether there is room for the kinds of a filter.
func (s *filters) takes(text string, d *draft) bool {
	return s.byText[text] != nil || s.kinds() < s.maxKinds && s.kindBytes < maxKindBytes || s.knows(d)
}

// knows reports whether there are filters of all kinds of d.
func (s *filters) knows(d *draft) bool {
	if d.form != nil {
		return s.byKey[d.form.key] != nil
	}
	for i := range d.parts {
		if s.terms.byKey[d.parts[i].form.key] == nil {
			return false
		}
	}
	return true
}

func tooManyKinds() error {
	return &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/filter",
		Message: fmt.Sprintf("the topic has filters of %d kinds, or %d bytes of them, and this is of another one", maxKinds, maxKindBytes),
		Hint:    "use a filter that differs from others in its values alone, or a rule"}
}
