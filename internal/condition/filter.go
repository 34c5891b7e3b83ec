package condition

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"fanfare.dev/fanfare"
)

// A filter is one distinct text and all subscriptions that have it: it is
// answered once per event, however many there are. It is a row of its form, or a
// compound of terms.
type filter struct {
	text   string
	number uint32 // among the topic's filters, while it has subscriptions
	form   *rule
	row    uint32
	parts  []uint32 // of a compound: rows of its terms, the guard first
	guard  guardKind
	at     uint32 // and its place among those with its guard
	count  int32
	only   fanfare.RowID   // where there is one
	places *roaring.Bitmap // where there were several
}

func (fl *filter) add(p fanfare.RowID) {
	switch {
	case fl.places != nil:
		fl.places.Add(uint32(p))
	case fl.count == 0:
		fl.only = p
	default:
		fl.places = roaring.BitmapOf(uint32(fl.only), uint32(p))
	}
	fl.count++
}

func (fl *filter) remove(p fanfare.RowID) {
	if fl.places != nil {
		fl.places.Remove(uint32(p))
	}
	fl.count--
}

// filters are those of a topic that have subscriptions.
type filters struct {
	byText map[string]*filter
	list   []*filter // by number; nil where one was dropped
	free   []uint32

	forms []*rule // each with its filters as rows
	byKey map[string]*rule
	terms terms
	rows  rows

	maxKinds  int
	kindBytes int // of the texts of which the forms and the terms were compiled
}

func newFilters() *filters {
	return &filters{byText: map[string]*filter{}, byKey: map[string]*rule{}, terms: newTerms(), maxKinds: maxKinds}
}

// install makes a text one of the filters.
func (s *filters) install(text string, d draft, t *topic) *filter {
	fl := &filter{text: text, number: uint32(len(s.list))}
	if last := len(s.free) - 1; last >= 0 {
		fl.number, s.free = s.free[last], s.free[:last]
	} else {
		s.list = append(s.list, nil)
	}
	s.list[fl.number], s.byText[text] = fl, fl
	if d.parts != nil {
		s.join(fl, d.parts, t)
		return fl
	}
	fl.form = s.byKey[d.form.key]
	if fl.form == nil {
		fl.form = s.newRule(d.form, t)
		fl.form.at = len(s.forms)
		s.forms, s.byKey[d.form.key] = append(s.forms, fl.form), fl.form
	}
	fl.row = fl.form.add(fanfare.RowID(fl.number), d.values, t.at(&s.rows))
	return fl
}

// newRule has the rows of a form or a term.
func (s *filters) newRule(fm *form, t *topic) *rule {
	t.paths.link(fm.plan.paths)
	s.kindBytes += len(fm.text)
	return &rule{name: fm.text, order: noRule, params: fm.params, plan: fm.plan, rows: &s.rows, filters: s, key: fm.key, taken: fm.taken}
}

// dropRule gives up what newRule took.
func (s *filters) dropRule(r *rule, t *topic) {
	t.paths.unlink(r.plan.paths)
	s.kindBytes -= len(r.name)
}

// drop forgets fl, which has no subscription any more, and its form with the
// last of its filters.
func (s *filters) drop(fl *filter, t *topic) {
	delete(s.byText, fl.text)
	s.list[fl.number] = nil
	s.free = append(s.free, fl.number)
	if fl.parts != nil {
		s.part(fl, t)
		return
	}
	r := fl.form
	r.remove(fl.row, t.at(&s.rows))
	if r.live == 0 {
		s.dropRule(r, t)
		delete(s.byKey, r.key)
		s.forms = without(s.forms, r)
	}
}

// without takes r out of a list in which it knows its place.
func without(list []*rule, r *rule) []*rule {
	last := list[len(list)-1]
	list[r.at], last.at = last, r.at
	list[len(list)-1] = nil
	return list[:len(list)-1]
}

// isRow reports whether a row of r is that of fl.
func (fl *filter) isRow(r *rule, row uint32) bool {
	if r.term != nil {
		return slices.Contains(fl.parts, row)
	}
	return fl.form == r && fl.row == row
}

// oneOf returns some filter of a form, or of a term.
func (s *filters) oneOf(r *rule) (fl *filter) {
	for _, number := range r.pages {
		for i, place := range s.rows.pages[number].places {
			fl = s.list[place]
			if fl != nil && fl.isRow(r, number<<pageBits|uint32(i)) {
				return fl
			}
		}
	}
	return nil
}
