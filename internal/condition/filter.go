package condition

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"fanfare.dev/fanfare"
)

// A filter is one distinct text with all its subscriptions; the index evaluates it once per event.
// It is a row of its shape, or a conjunction.
type filter struct {
	text          string
	number        uint32 // index in the list of filters
	table         *table
	row           uint32
	conjuncts     []uint32 // of a conjunction: rows of its conjunct shapes, those of the guard first
	guard         guardKind
	guardPosition uint32 // position in the list of its guard
	count         int32
	single        fanfare.RowID   // its subscription, if it has never had more than one
	subscriptions *roaring.Bitmap // otherwise
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

// filters are the filters of a topic that have subscriptions.
type filters struct {
	byText map[string]*filter
	list   []*filter // by number; nil for a free number
	free   []uint32

	shapes         []*table // tables whose rows are filters
	shapesByKey    map[string]*table
	conjunctShapes conjunctShapes
	pages          pageStore

	maxShapes  int
	shapeBytes int // text that was compiled for the shapes
}

func newFilters() *filters {
	return &filters{byText: map[string]*filter{}, shapesByKey: map[string]*table{}, conjunctShapes: newConjunctShapes(), maxShapes: maxShapes}
}

// add adds a filter.
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

// newTable makes a table for a shape.
func (s *filters) newTable(shape *filterShape, t *topic) *table {
	t.paths.Link(shape.plan.paths)
	s.shapeBytes += len(shape.text)
	return &table{name: shape.text, ruleNumber: noRule, params: shape.params, plan: shape.plan, store: &s.pages, filters: s, key: shape.key, isParam: shape.isParam}
}

// dropTable releases what newTable took.
func (s *filters) dropTable(tb *table, t *topic) {
	t.paths.Unlink(tb.plan.paths)
	s.shapeBytes -= len(tb.name)
}

// drop removes fl, which has no subscription left, and its shape if it was the last filter with it.
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

// removeTable removes tb from the list in which its position counts.
func removeTable(list []*table, tb *table) []*table {
	last := list[len(list)-1]
	list[tb.position], last.position = last, tb.position
	list[len(list)-1] = nil
	return list[:len(list)-1]
}

// isRow reports whether a row of tb belongs to fl.
func (fl *filter) isRow(tb *table, row uint32) bool {
	if tb.conjunct != nil {
		return slices.Contains(fl.conjuncts, row)
	}
	return fl.table == tb && fl.row == row
}

// anyFilterOf returns some filter with the shape of tb.
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

// Limits of the shapes of filters and conjuncts. An index finds the filters of one shape, but an
// event visits each shape, and a compiled shape can take a hundred times the memory of its text.
// Therefore, a topic accepts no new filter beyond these limits; existing filters stay.
const (
	maxShapes     = 16 << 10
	maxShapeBytes = 4 << 20
)

// shapeCount returns the number of compiled shapes.
func (s *filters) shapeCount() int { return len(s.shapes) + len(s.conjunctShapes.list) }

// canHold reports whether the limits allow a filter.
func (s *filters) canHold(text string, d *compiledFilter) bool {
	return s.byText[text] != nil || s.shapeCount() < s.maxShapes && s.shapeBytes < maxShapeBytes || s.hasShapes(d)
}

// hasShapes reports whether all shapes of d are in use.
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
		Message: fmt.Sprintf("the filter has a new structure, but the topic already has the maximum of %d filter structures or %d bytes of them", maxShapes, maxShapeBytes),
		Hint:    "use a rule, or a filter that differs from existing filters only in its values"}
}
