package condition

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// pageBits sizes the pages of rows and of columns.
const (
	pageBits    = 12
	rowsPerPage = 1 << pageBits
	pageMask    = rowsPerPage - 1
)

// A row holds one subscription to a rule: its place and its params, by column.
// Rows are numbered throughout the topic; a page of them belongs to one rule.
type page struct {
	expr.ParamPage
	table  *table
	owners []fanfare.RowID // of a form: numbers of filters
	guards []uint8         // of a plan with several: the one on which the row is
}

func newPage(tb *table) *page {
	p := &page{ParamPage: expr.ParamPage{Params: tb.params}, table: tb}
	for _, one := range tb.params {
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
		return append(make([]T, 0, min(max(2, 2*n), rowsPerPage)), column...)
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
func (tb *table) add(place fanfare.RowID, v lang.ParamValues, ix *rowIndexer) (row uint32) {
	row = tb.storeRow(place, v, ix.texts)
	tb.plan.insert(ix, row)
	return row
}

// storeRow puts a subscription into a free row.
func (tb *table) storeRow(place fanfare.RowID, v lang.ParamValues, t *expr.TextTable) (row uint32) {
	if last := len(tb.free) - 1; last >= 0 {
		row, tb.free = tb.free[last], tb.free[:last]
	} else {
		row = tb.newRow()
	}
	p, i := tb.store.page(row), int(row&pageMask)
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
	tb.rowCount++
	return row
}

// newRow makes a row behind the others, on a new page where the last one is full.
func (tb *table) newRow() uint32 {
	if last := len(tb.pages) - 1; last >= 0 {
		if p := tb.store.pages[tb.pages[last]]; len(p.owners) < rowsPerPage {
			return tb.pages[last]<<pageBits | p.extend()
		}
	}
	number := uint32(len(tb.store.pages))
	if last := len(tb.store.free) - 1; last >= 0 {
		number, tb.store.free = tb.store.free[last], tb.store.free[:last]
	} else {
		tb.store.pages = append(tb.store.pages, nil)
	}
	tb.store.pages[number] = newPage(tb)
	tb.pages = append(tb.pages, number)
	return number<<pageBits | tb.store.pages[number].extend()
}

// remove takes a row out of the plan's buckets, and out.
func (tb *table) remove(row uint32, ix *rowIndexer) {
	tb.plan.remove(ix, row)
	tb.freeRow(row, ix.texts)
}

// freeRow empties a row. A rule without subscriptions gives up its pages.
func (tb *table) freeRow(row uint32, t *expr.TextTable) {
	p, i := tb.store.page(row), int(row&pageMask)
	for c := range p.Texts {
		t.Release(p.Texts[c][i])
	}
	tb.free = append(tb.free, row)
	if tb.rowCount--; tb.rowCount == 0 {
		for _, number := range tb.pages {
			tb.store.pages[number] = nil
		}
		tb.store.free = append(tb.store.free, tb.pages...)
		tb.pages, tb.free = nil, nil
	}
}

// each calls visit with every row that holds a subscription.
func (tb *table) each(visit func(row uint32)) {
	empty := make(map[uint32]struct{}, len(tb.free))
	for _, row := range tb.free {
		empty[row] = struct{}{}
	}
	for _, number := range tb.pages {
		for i := range uint32(len(tb.store.pages[number].owners)) {
			row := number<<pageBits | i
			if _, ok := empty[row]; !ok {
				visit(row)
			}
		}
	}
}
