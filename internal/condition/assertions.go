package condition

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// Assertions that take more than a comparison.

// assertRows checks that the rows of a single access path are rows of tb.
func (tb *table) assertRows(a *accessPath, rows []uint32) {
	if a.covering { // they are owners
		return
	}
	for _, row := range rows {
		assert.True(tb.store.page(row).table == tb, "%s leads to row %d of another rule", tb.name, row)
	}
}

// assertGuarded checks that guards are necessary: the sorted f.candidateRows contain every row
// whose condition is true. If there are many rows, it evaluates only some of them.
func (tb *table) assertGuarded(f *matchFrame) {
	const most = 256
	n := 0
	tb.each(func(row uint32) {
		if _, found := slices.BinarySearch(f.candidateRows, row); found || n == most {
			return
		}
		n++
		p := tb.store.page(row)
		f.Page, f.Row = &p.ParamPage, int(row&pageMask)
		if tb.conjunct != nil && tb.filters.list[p.owners[f.Row]].conjuncts[0] != row {
			return // another conjunct leads to it
		}
		if tb.conjunct != nil && tb.filters.list[p.owners[f.Row]].guard != guardAccessPath {
			return
		}
		assert.True(!tb.plan.residualsHold(f), "the condition of row %d of %s is true, but no guard found the row", row, tb.name)
	})
	f.Page = nil
}

// assertBucket returns a visit that checks each row: its params give the key of the bucket, and its
// range value matches the event.
func (a *accessPath) assertBucket(f *matchFrame, rows *pageStore, key uint64, visit func(rows []uint32)) func(rows []uint32) {
	if a.covering {
		return visit
	}
	return func(list []uint32) {
		for _, row := range list {
			a.assertRow(f, rows, key, row)
		}
		visit(list)
	}
}

func (a *accessPath) assertRow(f *matchFrame, rows *pageStore, key uint64, row uint32) {
	ix := rowIndexer{pages: rows, texts: f.Texts}
	ix.seek(row)
	assert.True(slices.Contains(ix.keysOf(a), key), "row %d was found by key %d, which is not a key of the row", row, key)
	switch {
	case a.rangeKey == nil:
	case a.rangeKey.crossing != nil:
		now, _ := a.rangeKey.crossing.now.Load(&f.Frame)
		was, _ := a.rangeKey.crossing.previous.Load(&f.Frame)
		level := a.rowRangeValue(rows, row)
		after, ok1 := expr.CompareNumbers(now, level)
		before, ok2 := expr.CompareNumbers(was, level)
		assert.True(ok1 && ok2 && a.rangeKey.crossing.Crossed(before, after), "row %d was found, but its level %v is not crossed by a change from %v to %v", row, level, was, now)
	default:
		v, _ := a.rangeKey.Load(&f.Frame)
		x, ok := expr.ToFloat(v)
		assert.True(ok && a.rangeKey.op.Matches(x, a.rowRangeValue(rows, row)), "row %d was found, but the value %v does not match its range at %v", row, v, a.rowRangeValue(rows, row))
	}
	if a.grid != nil {
		point, ok := a.grid.point(&f.Frame)
		b, isBox := a.grid.box(ix.frame.Page, ix.frame.Row)
		assert.True(ok && isBox, "row %d was found in a grid cell, but the row has no box or the event has no point", row)
		for i := range a.grid.axes() {
			width := 0.0
			if l := ix.level[i]; l == topLevel {
				width = math.Inf(1)
			} else if l != pointLevel {
				width = math.Ldexp(1, int(l))
			}
			assert.True(point[i] >= b.low[i]-width && point[i] <= b.high[i]+2*width, "row %d was found in a grid cell, but %v is too far from the range %v to %v", row, point[i], b.low[i], b.high[i])
		}
	}
}

// assertReached checks that an event at a corner or in the middle of a box looks into the cell of
// its row, which contains the low corner.
func (l level) assertReached(b *box, corner *[maxAxes]float64, axes int) {
	for i := range axes {
		for _, x := range [...]float64{b.low[i], b.high[i], b.low[i]/2 + b.high[i]/2} {
			if x < b.low[i] || x > b.high[i] { // a rounding error
				continue
			}
			own := l.cell(i, x)
			assert.True(own == corner[i] || own-1 == corner[i], "a box from %v to %v is in cell %v, but the point %v is looked up in cell %v", b.low[i], b.high[i], corner[i], x, own)
		}
	}
}

// assertExact checks that a literal keeps its value as a param, which is a double or a string.
func assertExact(tok *lang.Token) {
	switch tok.Kind {
	case lang.KindInt:
		number, err := strconv.ParseInt(tok.Text, 10, 64)
		assert.True(err == nil && number == int64(tok.Number) && float64(number) == tok.Number, "the literal %s was stored as the param %v", tok.Text, tok.Number)
	case lang.KindDouble:
		number, err := strconv.ParseFloat(tok.Text, 64)
		assert.True(err == nil && number == tok.Number, "the literal %s was stored as the param %v", tok.Text, tok.Number)
	case lang.KindString:
		assert.True(tok.Text[1:len(tok.Text)-1] == tok.Value && !strings.Contains(tok.Value, `\`), "the literal %s was stored as the param %q", tok.Text, tok.Value)
	}
}

// assertStandsFor checks that the shape with its params put back is the filter.
func (shape *filterShape) assertStandsFor(tf *lang.TokenizedFilter, taken []bool) {
	if len(tf.Tokens) == 0 {
		return
	}
	own, ok := lang.Tokenize(shape.text, nil)
	assert.True(ok && len(own.Tokens) == len(tf.Tokens) && slices.Equal(shape.isParam, taken), "the shape %s does not match the filter", shape.text)
	v, literal, numbers, texts := tf.LiteralValues(taken), 0, 0, 0
	for i := range tf.Tokens {
		given, formal := &tf.Tokens[i], &own.Tokens[i]
		assert.True(given.Kind == formal.Kind, "the filter has %q where the shape has %q", given.Text, formal.Text)
		if given.Kind != lang.KindAny {
			literal++
		}
		switch {
		case given.Kind == lang.KindAny || !taken[literal-1]:
			assert.True(given.Text == formal.Text, "the filter has %q where the shape has %q", given.Text, formal.Text)
		case given.IsText():
			assert.True(v.Texts[texts] == given.Value, "the literal %q was stored as the param %q", given.Text, v.Texts[texts])
			texts++
		default:
			assert.True(v.Numbers[numbers] == given.Number, "the literal %q was stored as the param %v", given.Text, v.Numbers[numbers])
			numbers++
		}
	}
	assert.True(len(v.Texts) == texts && len(v.Numbers) == numbers && len(shape.params) == texts+numbers, "the shape %s has the wrong number of params: %d", shape.text, len(shape.params))
}
