package condition

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// pageBits is the binary logarithm of the number of rows of a page.
const (
	pageBits    = 12
	rowsPerPage = 1 << pageBits
	pageMask    = rowsPerPage - 1
)

// A page holds rows of one table. A row is one subscription to a rule with its params by column.
// Rows are numbered in the whole topic.
type page struct {
	expr.ParamPage
	table  *table
	owners []fanfare.RowID // ids of subscriptions, or numbers of filters
	guards []uint8         // of a plan with several guards: the guard of each row
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

// extend adds a row. It grows in small steps, because shapes have many pages with few rows.
func (p *page) extend() (row uint32) {
	row = uint32(len(p.owners))
	p.owners = append(growColumn(p.owners), 0)
	for c := range p.Numbers {
		p.Numbers[c] = append(growColumn(p.Numbers[c]), 0)
	}
	for c := range p.Texts {
		p.Texts[c] = append(growColumn(p.Texts[c]), 0)
	}
	return row
}

// setGuard stores the guard of a row.
func (p *page) setGuard(row uint32, guard uint8) {
	if missing := len(p.owners) - len(p.guards); missing > 0 {
		p.guards = append(p.guards, make([]uint8, missing)...)
	}
	p.guards[row&pageMask] = guard
}

// growColumn doubles the capacity of a full column, up to exactly a page.
func growColumn[T any](column []T) []T {
	if n := len(column); n == cap(column) {
		return append(make([]T, 0, min(max(2, 2*n), rowsPerPage)), column...)
	}
	return column
}

// pageStore holds the pages of a topic.
type pageStore struct {
	pages []*page
	free  []uint32 // numbers of pages without a table
}

func (r *pageStore) page(row uint32) *page { return r.pages[row>>pageBits] }

// A table holds the rows of one rule, or of one shape of filters or conjuncts. The table of a rule
// exists while the topic has a rule with its name; a new definition replaces its plan. The rows of
// a shape are filters.
type table struct {
	name       string
	ruleNumber int16 // position among the topic's rules; noRule for a shape
	params     []lang.Param
	plan       *plan

	store    *pageStore
	pages    []uint32 // numbers of its pages
	free     []uint32 // free rows in these pages
	rowCount int

	filters  *filters // of a shape
	key      string
	isParam  []bool         // which literals of its filters are params
	position int            // in the list of shapes
	conjunct *conjunctShape // of a conjunct shape
}

// noRule is the rule number of shapes.
const noRule = -1

// add stores a row and puts it on its access paths.
func (tb *table) add(place fanfare.RowID, v lang.ParamValues, ix *rowIndexer) (row uint32) {
	row = tb.storeRow(place, v, ix.texts)
	tb.plan.insert(ix, row)
	return row
}

// storeRow stores a subscription or filter in a free row.
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

// newRow creates a row on the last page, or on a new page if that is full.
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

// remove removes a row from its access paths and frees it.
func (tb *table) remove(row uint32, ix *rowIndexer) {
	tb.plan.remove(ix, row)
	tb.freeRow(row, ix.texts)
}

// freeRow empties a row. A table without rows releases its pages.
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

// each calls visit with every row that is not free.
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
