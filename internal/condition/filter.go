package condition

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"fanfare.dev/fanfare"
)

// A filter is one distinct text and all subscriptions that have it: it is
// answered once per event, however many there are. It is a row of its form, or a
// compound of terms.
type filter struct {
	text          string
	number        uint32 // among the topic's filters, while it has subscriptions
	table         *table
	row           uint32
	conjuncts     []uint32 // of a compound: rows of its terms, the guard first
	guard         guardKind
	guardPosition uint32 // and its place among those with its guard
	count         int32
	single        fanfare.RowID   // where there is one
	subscriptions *roaring.Bitmap // where there were several
}

func (fl *filter) add(p fanfare.RowID) {
	switch {
	case fl.subscriptions != nil:
		fl.subscriptions.Add(uint32(p))
	case fl.count == 0:
		fl.single = p
	default:
		fl.subscriptions = roaring.BitmapOf(uint32(fl.single), uint32(p))
	}
	fl.count++
}

func (fl *filter) remove(p fanfare.RowID) {
	if fl.subscriptions != nil {
		fl.subscriptions.Remove(uint32(p))
	}
	fl.count--
}

// filters are those of a topic that have subscriptions.
type filters struct {
	byText map[string]*filter
	list   []*filter // by number; nil where one was dropped
	free   []uint32

	shapes         []*table // each with its filters as rows
	shapesByKey    map[string]*table
	conjunctShapes conjunctShapes
	pages          pageStore

	maxShapes  int
	shapeBytes int // of the texts of which the forms and the terms were compiled
}

func newFilters() *filters {
	return &filters{byText: map[string]*filter{}, shapesByKey: map[string]*table{}, conjunctShapes: newConjunctShapes(), maxShapes: maxShapes}
}

// add makes a text one of the filters.
func (s *filters) add(text string, d compiledFilter, t *topic) *filter {
	fl := &filter{text: text, number: uint32(len(s.list))}
	if last := len(s.free) - 1; last >= 0 {
		fl.number, s.free = s.free[last], s.free[:last]
	} else {
		s.list = append(s.list, nil)
	}
	s.list[fl.number], s.byText[text] = fl, fl
	if d.conjuncts != nil {
		s.addConjunction(fl, d.conjuncts, t)
		return fl
	}
	fl.table = s.shapesByKey[d.shape.key]
	if fl.table == nil {
		fl.table = s.newTable(d.shape, t)
		fl.table.position = len(s.shapes)
		s.shapes, s.shapesByKey[d.shape.key] = append(s.shapes, fl.table), fl.table
	}
	fl.row = fl.table.add(fanfare.RowID(fl.number), d.values, t.indexerFor(&s.pages))
	return fl
}

// newTable has the rows of a form or a term.
func (s *filters) newTable(shape *filterShape, t *topic) *table {
	t.paths.Link(shape.plan.paths)
	s.shapeBytes += len(shape.text)
	return &table{name: shape.text, ruleNumber: noRule, params: shape.params, plan: shape.plan, store: &s.pages, filters: s, key: shape.key, isParam: shape.isParam}
}

// dropTable gives up what newRule took.
func (s *filters) dropTable(tb *table, t *topic) {
	t.paths.Unlink(tb.plan.paths)
	s.shapeBytes -= len(tb.name)
}

// drop forgets fl, which has no subscription any more, and its form with the
// last of its filters.
func (s *filters) drop(fl *filter, t *topic) {
	delete(s.byText, fl.text)
	s.list[fl.number] = nil
	s.free = append(s.free, fl.number)
	if fl.conjuncts != nil {
		s.removeConjunction(fl, t)
		return
	}
	tb := fl.table
	tb.remove(fl.row, t.indexerFor(&s.pages))
	if tb.rowCount == 0 {
		s.dropTable(tb, t)
		delete(s.shapesByKey, tb.key)
		s.shapes = removeTable(s.shapes, tb)
	}
}

// removeTable takes r out of a list in which it knows its place.
func removeTable(list []*table, tb *table) []*table {
	last := list[len(list)-1]
	list[tb.position], last.position = last, tb.position
	list[len(list)-1] = nil
	return list[:len(list)-1]
}

// isRow reports whether a row of r is that of fl.
func (fl *filter) isRow(tb *table, row uint32) bool {
	if tb.conjunct != nil {
		return slices.Contains(fl.conjuncts, row)
	}
	return fl.table == tb && fl.row == row
}

// anyFilterOf returns some filter of a form, or of a term.
func (s *filters) anyFilterOf(tb *table) (fl *filter) {
	for _, number := range tb.pages {
		for i, place := range s.pages.pages[number].owners {
			fl = s.list[place]
			if fl != nil && fl.isRow(tb, number<<pageBits|uint32(i)) {
				return fl
			}
		}
	}
	return nil
}

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
