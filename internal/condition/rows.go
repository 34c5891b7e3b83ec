package condition

import "fanfare.dev/fanfare"

// pageBits sizes the pages of rows and of columns.
const (
	pageBits = 12
	pageRows = 1 << pageBits
	pageMask = pageRows - 1
)

// A row holds one subscription to a rule: its place and its params, by column.
// Rows are numbered throughout the topic; a page of them belongs to one rule.
type page struct {
	rule    *rule
	places  []fanfare.RowID // of a form: numbers of filters
	numbers [][]float64
	texts   [][]uint32 // numbers of texts; booleans and lists too
	guards  []uint8    // of a plan with several: the one on which the row is
}

func newPage(r *rule) *page {
	p := &page{rule: r}
	for _, one := range r.params {
		if one.isNumber() {
			p.numbers = append(p.numbers, nil)
		} else {
			p.texts = append(p.texts, nil)
		}
	}
	return p
}

// extend makes one more row: pages of forms are many, and mostly small.
func (p *page) extend() (row uint32) {
	row = uint32(len(p.places))
	p.places = append(room(p.places), 0)
	for c := range p.numbers {
		p.numbers[c] = append(room(p.numbers[c]), 0)
	}
	for c := range p.texts {
		p.texts[c] = append(room(p.texts[c]), 0)
	}
	return row
}

// guard keeps the guard of a row.
func (p *page) guard(row uint32, guard uint8) {
	if missing := len(p.places) - len(p.guards); missing > 0 {
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

// params returns the params of a row as CEL's sub.
func (p *page) params(row int, t *texts) map[string]any {
	sub := make(map[string]any, len(p.rule.params))
	for _, one := range p.rule.params {
		switch one.kind {
		case kindDouble:
			sub[one.name] = p.numbers[one.column][row]
		case kindString:
			sub[one.name] = t.at(p.texts[one.column][row]).text
		case kindBool:
			sub[one.name] = t.at(p.texts[one.column][row]).text == "true"
		case kindList:
			sub[one.name] = t.lists[p.texts[one.column][row]].values
		}
	}
	return sub
}

// rows are the pages of a topic.
type rows struct {
	pages []*page
	free  []uint32 // numbers of pages that no rule has
}

func (r *rows) page(row uint32) *page { return r.pages[row>>pageBits] }

// A rule is what the topic's subscriptions have of one of its rules: it lasts
// while the topic has a rule of that name, and its plan is replaced when the
// rule is redefined.
//
// A form is a rule whose rows are filters.
type rule struct {
	name   string
	order  int16 // its place among the topic's rules; noRule of a form
	params []param
	plan   *plan

	rows  *rows
	pages []uint32 // numbers of its pages
	free  []uint32 // rows of these that hold nothing
	live  int

	filters *filters // of a form, and of a term
	key     string
	taken   []bool // which literals of its filters are params
	at      int    // among the forms, or the terms
	term    *term  // what a term has beside
}

// noRule is the order of what is not one of the topic's rules.
const noRule = -1

// add puts a subscription into a row and into the plan's buckets.
func (r *rule) add(place fanfare.RowID, v values, at *placing) (row uint32) {
	row = r.keep(place, v, at.texts)
	r.plan.insert(at, row)
	return row
}

// keep puts a subscription into a free row.
func (r *rule) keep(place fanfare.RowID, v values, t *texts) (row uint32) {
	if last := len(r.free) - 1; last >= 0 {
		row, r.free = r.free[last], r.free[:last]
	} else {
		row = r.extend()
	}
	p, i := r.rows.page(row), int(row&pageMask)
	p.places[i] = place
	for c, number := range v.numbers {
		p.numbers[c][i] = number
	}
	for c, text := range v.texts {
		p.texts[c][i] = t.take(text)
	}
	if assertions {
		p.assertHolds(i, v, t)
	}
	r.live++
	return row
}

// extend makes a row behind the others, on a new page where the last one is full.
func (r *rule) extend() uint32 {
	if last := len(r.pages) - 1; last >= 0 {
		if p := r.rows.pages[r.pages[last]]; len(p.places) < pageRows {
			return r.pages[last]<<pageBits | p.extend()
		}
	}
	number := uint32(len(r.rows.pages))
	if last := len(r.rows.free) - 1; last >= 0 {
		number, r.rows.free = r.rows.free[last], r.rows.free[:last]
	} else {
		r.rows.pages = append(r.rows.pages, nil)
	}
	r.rows.pages[number] = newPage(r)
	r.pages = append(r.pages, number)
	return number<<pageBits | r.rows.pages[number].extend()
}

// remove takes a row out of the plan's buckets, and out.
func (r *rule) remove(row uint32, at *placing) {
	r.plan.remove(at, row)
	r.release(row, at.texts)
}

// release empties a row. A rule without subscriptions gives up its pages.
func (r *rule) release(row uint32, t *texts) {
	p, i := r.rows.page(row), int(row&pageMask)
	for c := range p.texts {
		t.drop(p.texts[c][i])
	}
	r.free = append(r.free, row)
	if r.live--; r.live == 0 {
		for _, number := range r.pages {
			r.rows.pages[number] = nil
		}
		r.rows.free = append(r.rows.free, r.pages...)
		r.pages, r.free = nil, nil
	}
}

// each calls visit with every row that holds a subscription.
func (r *rule) each(visit func(row uint32)) {
	empty := make(map[uint32]struct{}, len(r.free))
	for _, row := range r.free {
		empty[row] = struct{}{}
	}
	for _, number := range r.pages {
		for i := range uint32(len(r.rows.pages[number].places)) {
			row := number<<pageBits | i
			if _, ok := empty[row]; !ok {
				visit(row)
			}
		}
	}
}
