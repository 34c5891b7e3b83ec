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
	maxShapes     = 16 << 10
	maxShapeBytes = 4 << 20
)

// shapeCount is how many conditions were compiled for the filters.
func (s *filters) shapeCount() int { return len(s.shapes) + len(s.conjunctShapes.list) }

// hasRoomFor reports whether there is room for the kinds of a filter.
func (s *filters) hasRoomFor(text string, d *compiledFilter) bool {
	return s.byText[text] != nil || s.shapeCount() < s.maxShapes && s.shapeBytes < maxShapeBytes || s.hasShapes(d)
}

// hasShapes reports whether there are filters of all kinds of d.
func (s *filters) hasShapes(d *compiledFilter) bool {
	if d.shape != nil {
		return s.shapesByKey[d.shape.key] != nil
	}
	for i := range d.conjuncts {
		if s.conjunctShapes.byKey[d.conjuncts[i].shape.key] == nil {
			return false
		}
	}
	return true
}

func tooManyShapes() error {
	return &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/filter",
		Message: fmt.Sprintf("the topic has filters of %d kinds, or %d bytes of them, and this is of another one", maxShapes, maxShapeBytes),
		Hint:    "use a filter that differs from others in its values alone, or a rule"}
}
