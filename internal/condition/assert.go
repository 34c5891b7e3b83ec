package condition

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/condition/assert"
)

// The checks that take more than a comparison. Each says what a part of the index assumes.

// assertRows: rows to which a direct way leads are rows of r.
func (r *table) assertRows(w *accessPath, rows []uint32) {
	if w.covering { // they are what the rows stand for
		return
	}
	for _, row := range rows {
		assert.That(r.store.page(row).table == r, "%s leads to row %d of another rule", r.name, row)
	}
}

// assertGuarded: f.rows, which are in order, has every row for which the condition is true:
// guards are necessary. Of many rows some are evaluated.
func (r *table) assertGuarded(f *matchFrame) {
	const most = 256
	n := 0
	r.each(func(row uint32) {
		if _, found := slices.BinarySearch(f.candidateRows, row); found || n == most {
			return
		}
		n++
		p := r.store.page(row)
		f.page, f.row = &p.paramPage, int(row&pageMask)
		if r.conjunct != nil && r.filters.list[p.owners[f.row]].conjuncts[0] != row {
			return // the compound is found by another of its parts
		}
		if r.conjunct != nil && r.filters.list[p.owners[f.row]].guard != guardAccessPath {
			return
		}
		assert.That(!r.plan.residualsHold(f), "the condition of row %d of %s is true and no guard led to it", row, r.name)
	})
	f.page = nil
}

// assertBucket returns a visit that looks at each row: it belongs into the bucket with that key,
// by its params, and what the bucket is ordered by is as the event asks.
func (w *accessPath) assertBucket(f *matchFrame, rows *pageStore, key uint64, visit func(rows []uint32)) func(rows []uint32) {
	if w.covering {
		return visit
	}
	return func(list []uint32) {
		for _, row := range list {
			w.assertRow(f, rows, key, row)
		}
		visit(list)
	}
}

func (w *accessPath) assertRow(f *matchFrame, rows *pageStore, key uint64, row uint32) {
	at := rowIndexer{pages: rows, texts: f.texts}
	at.seek(row)
	assert.That(slices.Contains(at.keysOf(w), key), "row %d is found by key %d, which is none of its", row, key)
	switch {
	case w.rangeKey == nil:
	case w.rangeKey.crossing != nil:
		now, _ := w.rangeKey.crossing.now.load(&f.frame)
		was, _ := w.rangeKey.crossing.previous.load(&f.frame)
		level := w.rangeValue(rows, row)
		after, ok1 := compareNumbers(now, level)
		before, ok2 := compareNumbers(was, level)
		assert.That(ok1 && ok2 && w.rangeKey.crossing.crossed(before, after), "row %d is found, and its level %v is not crossed from %v to %v", row, level, was, now)
	default:
		v, _ := w.rangeKey.load(&f.frame)
		x, ok := toFloat(v)
		assert.That(ok && w.rangeKey.op.matches(x, w.rangeValue(rows, row)), "row %d is found, and %v is not in its range at %v", row, v, w.rangeValue(rows, row))
	}
	if w.grid != nil {
		point, ok := w.grid.point(&f.frame)
		b, isBox := w.grid.box(at.frame.page, at.frame.row)
		assert.That(ok && isBox, "row %d is found in a cell, and it has no box, or the event no point", row)
		for i := range w.grid.axes() {
			width := 0.0
			if l := at.level[i]; l == topLevel {
				width = math.Inf(1)
			} else if l != pointLevel {
				width = math.Ldexp(1, int(l))
			}
			assert.That(point[i] >= b.low[i]-width && point[i] <= b.high[i]+2*width, "row %d is found in a cell, and %v is far from %v to %v", row, point[i], b.low[i], b.high[i])
		}
	}
}

// assertReached: an event at a corner of the box, or in its middle, looks into the cell of the
// row, whose corner has the low one of the box.
func (l level) assertReached(b *box, corner *[maxAxes]float64, axes int) {
	for i := range axes {
		for _, x := range [...]float64{b.low[i], b.high[i], b.low[i]/2 + b.high[i]/2} {
			if x < b.low[i] || x > b.high[i] { // rounded
				continue
			}
			own := l.cell(i, x)
			assert.That(own == corner[i] || own-1 == corner[i], "a box from %v to %v is in cell %v, and %v looks into %v", b.low[i], b.high[i], corner[i], x, own)
		}
	}
}

// assertFound returns a visit that looks at each text: it is in hay. With everyEvent, which is
// the number of none, it asks whether those were all.
func (n *ngramIndex) assertFound(hay string, visit func(number uint32)) func(number uint32) {
	const most = 4096
	want := map[uint32]bool{} // true: it was found
	filed := 0
	for i := range n.tables {
		for _, list := range n.tables[i].entries {
			for _, one := range list {
				if filed++; filed > most {
					return func(number uint32) {
						if number != everyEvent {
							visit(number)
						}
					}
				}
				if strings.Contains(hay, one.text) {
					want[one.number] = false
				}
			}
		}
	}
	return func(number uint32) {
		if number == everyEvent {
			for number, found := range want {
				assert.That(found, "text %d is in %q and was not found", number, hay)
			}
			return
		}
		_, known := want[number]
		assert.That(known, "text %d was found in %q, where it is not", number, hay)
		want[number] = true
		visit(number)
	}
}

// assertRead: what a slot holds is where the path leads, whoever else shares the slot.
func (f *frame) assertRead(p *path, s *cachedValue) {
	v, state := p.find(f)
	assert.That((state == absent) == (s.state == absent), "%s is there for one condition and not for another", p.key())
	if state != absent {
		assert.That(equal(v, s.value) || !equal(v, v), "%s is %v for one condition and %v for another", p.key(), s.value, v)
	}
}

// assertHolds: a row has the values that were put into it.
func (p *paramPage) assertHolds(row int, v paramValues, t *textTable) {
	held := p.values(row, t)
	assert.That(slices.Equal(held.texts, v.texts), "row %d holds %q for %q", row, held.texts, v.texts)
	assert.That(slices.Equal(held.numbers, v.numbers), "row %d holds %v for %v", row, held.numbers, v.numbers)
}

// assertExact: as a param, which is a double or a text, a literal is what it was.
func assertExact(w *token) {
	switch w.kind {
	case kindInt:
		number, err := strconv.ParseInt(w.text, 10, 64)
		assert.That(err == nil && number == int64(w.number) && float64(number) == w.number, "the literal %s is the param %v", w.text, w.number)
	case kindDouble:
		number, err := strconv.ParseFloat(w.text, 64)
		assert.That(err == nil && number == w.number, "the literal %s is the param %v", w.text, w.number)
	case kindString:
		assert.That(w.text[1:len(w.text)-1] == w.value && !strings.Contains(w.value, `\`), "the literal %s is the param %q", w.text, w.value)
	}
}

// assertStandsFor: a filter is its form with its values put back into the holes.
func (fm *filterShape) assertStandsFor(s *tokenizedFilter, taken []bool) {
	if len(s.tokens) == 0 {
		return
	}
	own, ok := tokenize(fm.text, nil)
	assert.That(ok && len(own.tokens) == len(s.tokens) && slices.Equal(fm.isParam, taken), "the form %s is not that of a skeleton", fm.text)
	v, literal, numbers, texts := s.literalValues(taken), 0, 0, 0
	for i := range s.tokens {
		given, formal := &s.tokens[i], &own.tokens[i]
		assert.That(given.kind == formal.kind, "%q and %q are in one place of a form", given.text, formal.text)
		if given.kind != kindAny {
			literal++
		}
		switch {
		case given.kind == kindAny || !taken[literal-1]:
			assert.That(given.text == formal.text, "%q and %q are in one place of a form", given.text, formal.text)
		case given.isText():
			assert.That(v.texts[texts] == given.value, "%q is the param %q", given.text, v.texts[texts])
			texts++
		default:
			assert.That(v.numbers[numbers] == given.number, "%q is the param %v", given.text, v.numbers[numbers])
			numbers++
		}
	}
	assert.That(len(v.texts) == texts && len(v.numbers) == numbers && len(fm.params) == texts+numbers, "the form %s has %d params", fm.text, len(fm.params))
}
