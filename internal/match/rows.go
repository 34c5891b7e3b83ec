package match

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
	places  []fanfare.Place
	numbers [][]float64
	texts   [][]uint32 // numbers of texts; booleans and lists too
}

func newPage(r *rule) *page {
	p := &page{rule: r, places: make([]fanfare.Place, pageRows)}
	for _, one := range r.params {
		if one.isNumber() {
			p.numbers = append(p.numbers, make([]float64, pageRows))
		} else {
			p.texts = append(p.texts, make([]uint32, pageRows))
		}
	}
	return p
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
			sub[one.name] = t.at(p.texts[one.column][row]).list
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
type rule struct {
	name   string
	order  int16 // its place among the topic's rules
	params []param
	plan   *plan

	rows  *rows
	pages []uint32 // numbers of its pages
	free  []uint32 // rows of these that hold nothing
	live  int
}

// add puts a subscription into a free row and into the plan's buckets.
func (r *rule) add(place fanfare.Place, v values, t *texts) (row uint32) {
	if len(r.free) == 0 {
		r.grow()
	}
	last := len(r.free) - 1
	row, r.free = r.free[last], r.free[:last]
	p, i := r.rows.page(row), int(row&pageMask)
	p.places[i] = place
	for c, number := range v.numbers {
		p.numbers[c][i] = number
	}
	for c, text := range v.texts {
		p.texts[c][i] = t.take(text)
	}
	r.live++
	r.plan.insert(p, row)
	return row
}

func (r *rule) grow() {
	number := uint32(len(r.rows.pages))
	if last := len(r.rows.free) - 1; last >= 0 {
		number, r.rows.free = r.rows.free[last], r.rows.free[:last]
	} else {
		r.rows.pages = append(r.rows.pages, nil)
	}
	r.rows.pages[number] = newPage(r)
	r.pages = append(r.pages, number)
	for i := pageRows - 1; i >= 0; i-- {
		r.free = append(r.free, number<<pageBits|uint32(i))
	}
}

// remove takes a row out. A rule without subscriptions gives up its pages.
func (r *rule) remove(row uint32, t *texts) {
	p, i := r.rows.page(row), int(row&pageMask)
	r.plan.remove(p, row)
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
func (r *rule) each(visit func(p *page, row uint32)) {
	empty := make(map[uint32]struct{}, len(r.free))
	for _, row := range r.free {
		empty[row] = struct{}{}
	}
	for _, number := range r.pages {
		for i := range uint32(pageRows) {
			row := number<<pageBits | i
			if _, ok := empty[row]; !ok {
				visit(r.rows.pages[number], row)
			}
		}
	}
}
