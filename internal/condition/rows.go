package condition

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// pageBits sizes the pages of rows and of columns.
const (
	pageBits = 12
	pageRows = 1 << pageBits
	pageMask = pageRows - 1
)

// A row holds one subscription to a rule: its place and its params, by column.
// Rows are numbered throughout the topic; a page of them belongs to one rule.
type page struct {
	expr.ParamPage
	table  *table
	owners []fanfare.RowID // of a form: numbers of filters
	guards []uint8         // of a plan with several: the one on which the row is
}

func newPage(r *table) *page {
	p := &page{ParamPage: expr.ParamPage{Params: r.params}, table: r}
	for _, one := range r.params {
		if one.IsNumber() {
			p.Numbers = append(p.Numbers, nil)
		} else {
			p.Texts = append(p.Texts, nil)
		}
	}
	return p
}

// extend makes one more row: pages of forms are many, and mostly small.
func (p *page) extend() (row uint32) {
	row = uint32(len(p.owners))
	p.owners = append(room(p.owners), 0)
	for c := range p.Numbers {
		p.Numbers[c] = append(room(p.Numbers[c]), 0)
	}
	for c := range p.Texts {
		p.Texts[c] = append(room(p.Texts[c]), 0)
	}
	return row
}

// setGuard keeps the guard of a row.
func (p *page) setGuard(row uint32, guard uint8) {
	if missing := len(p.owners) - len(p.guards); missing > 0 {
		p.guards = append(p.guards, make([]uint8, missing)...)
	}
	p.guards[row&pageMask] = guard
}

// room doubles a column that is full, up to exactly a page.
func room[T any](column []T) []T {
	if n := len(column); n == cap(column) {
		return append(make([]T, 0, min(max(2, 2*n), pageRows)), column...)
	}
	return column
}

// pageStore are the pages of a topic.
type pageStore struct {
	pages []*page
	free  []uint32 // numbers of pages that no rule has
}

func (r *pageStore) page(row uint32) *page { return r.pages[row>>pageBits] }

// A rule is what the topic's subscriptions have of one of its rules: it lasts
// while the topic has a rule of that name, and its plan is replaced when the
// rule is redefined.
//
// A form is a rule whose rows are filters.
type table struct {
	name       string
	ruleNumber int16 // its place among the topic's rules; noRule of a form
	params     []lang.Param
	plan       *plan

	store    *pageStore
	pages    []uint32 // numbers of its pages
	free     []uint32 // rows of these that hold nothing
	rowCount int

	filters  *filters // of a form, and of a term
	key      string
	isParam  []bool         // which literals of its filters are params
	position int            // among the forms, or the terms
	conjunct *conjunctShape // what a term has beside
}

// noRule is the order of what is not one of the topic's rules.
const noRule = -1

// add puts a subscription into a row and into the plan's buckets.
func (r *table) add(place fanfare.RowID, v lang.ParamValues, at *rowIndexer) (row uint32) {
	row = r.storeRow(place, v, at.texts)
	r.plan.insert(at, row)
	return row
}

// storeRow puts a subscription into a free row.
func (r *table) storeRow(place fanfare.RowID, v lang.ParamValues, t *expr.TextTable) (row uint32) {
	if last := len(r.free) - 1; last >= 0 {
		row, r.free = r.free[last], r.free[:last]
	} else {
		row = r.newRow()
	}
	p, i := r.store.page(row), int(row&pageMask)
	p.owners[i] = place
	for c, number := range v.Numbers {
		p.Numbers[c][i] = number
	}
	for c, text := range v.Texts {
		p.Texts[c][i] = t.Acquire(text)
	}
	if assert.Enabled {
		p.AssertHolds(i, v, t)
	}
	r.rowCount++
	return row
}

// newRow makes a row behind the others, on a new page where the last one is full.
func (r *table) newRow() uint32 {
	if last := len(r.pages) - 1; last >= 0 {
		if p := r.store.pages[r.pages[last]]; len(p.owners) < pageRows {
			return r.pages[last]<<pageBits | p.extend()
		}
	}
	number := uint32(len(r.store.pages))
	if last := len(r.store.free) - 1; last >= 0 {
		number, r.store.free = r.store.free[last], r.store.free[:last]
	} else {
		r.store.pages = append(r.store.pages, nil)
	}
	r.store.pages[number] = newPage(r)
	r.pages = append(r.pages, number)
	return number<<pageBits | r.store.pages[number].extend()
}

// remove takes a row out of the plan's buckets, and out.
func (r *table) remove(row uint32, at *rowIndexer) {
	r.plan.remove(at, row)
	r.freeRow(row, at.texts)
}

// freeRow empties a row. A rule without subscriptions gives up its pages.
func (r *table) freeRow(row uint32, t *expr.TextTable) {
	p, i := r.store.page(row), int(row&pageMask)
	for c := range p.Texts {
		t.Release(p.Texts[c][i])
	}
	r.free = append(r.free, row)
	if r.rowCount--; r.rowCount == 0 {
		for _, number := range r.pages {
			r.store.pages[number] = nil
		}
		r.store.free = append(r.store.free, r.pages...)
		r.pages, r.free = nil, nil
	}
}

// each calls visit with every row that holds a subscription.
func (r *table) each(visit func(row uint32)) {
	empty := make(map[uint32]struct{}, len(r.free))
	for _, row := range r.free {
		empty[row] = struct{}{}
	}
	for _, number := range r.pages {
		for i := range uint32(len(r.store.pages[number].owners)) {
			row := number<<pageBits | i
			if _, ok := empty[row]; !ok {
				visit(row)
			}
		}
	}
}
