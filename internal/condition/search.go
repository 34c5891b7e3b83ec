package condition

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/failpoint"
)

// search finds the rows of tb that match.
func (tb *table) search(f *matchFrame) {
	p := tb.plan
	f.Page = nil
	if tb.rowCount == 0 || p.eventPredicates.Eval(&f.Frame) != expr.True {
		return
	}
	if p.singlePath {
		a := p.guards[0][0]
		a.search(f, tb.store, func(rows []uint32) {
			if assert.Enabled {
				tb.assertRows(a, rows)
			}
			tb.emitMatches(f, a, rows)
		})
		return
	}
	f.candidateRows = f.candidateRows[:0]
	for _, paths := range p.guards {
		for _, a := range paths {
			a.search(f, tb.store, func(rows []uint32) { f.candidateRows = append(f.candidateRows, rows...) })
		}
	}
	slices.Sort(f.candidateRows)
	if assert.Enabled {
		tb.assertGuarded(f)
	}
	tb.emitMatches(f, nil, slices.Compact(f.candidateRows))
}

// search visits the rows that a leads to, or their owners (see covering).
func (a *accessPath) search(f *matchFrame, rows *pageStore, visit func(rows []uint32)) {
	if a.eventPredicates.Eval(&f.Frame) != expr.True {
		return
	}
	switch {
	case a.substring != nil:
		a.searchSubstrings(f, rows, visit)
		return
	case a.sharedText != nil:
		a.searchSharedTexts(f, rows, visit)
		return
	}
	key, ok := a.eventKey(f)
	switch {
	case !ok:
	case a.grid != nil:
		a.grid.eachCellAt(&f.Frame, key, func(cell uint64) { a.visitBucket(f, rows, cell, visit) })
	default:
		a.visitBucket(f, rows, key, visit)
	}
}

// visitBucket visits the rows of a bucket that match the range key.
func (a *accessPath) visitBucket(f *matchFrame, rows *pageStore, key uint64, visit func(rows []uint32)) {
	b, known := a.buckets[key]
	if !known {
		return
	}
	if assert.Enabled {
		visit = a.assertBucket(f, rows, key, visit)
	}
	value := 0.0
	if a.rangeKey != nil {
		if a.rangeKey.crossing != nil {
			a.visitCrossed(f, rows, b, visit)
			return
		}
		v, _ := a.rangeKey.Load(&f.Frame)
		var ok bool
		if value, ok = expr.ToFloat(v); !ok {
			return
		}
	}
	switch {
	case b.bucket == nil:
		if a.rangeKey == nil || a.rangeKey.op.MatchesOrder(cmp.Compare(value, a.rowRangeValue(rows, b.row))) {
			f.single[0] = a.entry(rows, b.row)
			visit(f.single[:])
		}
	case a.rangeKey == nil:
		b.bucket.each(visit)
	default:
		b.bucket.eachInRange(value, a.rangeKey.op, visit)
	}
}

// searchSubstrings visits the buckets of all texts that occur in the event's text.
func (a *accessPath) searchSubstrings(f *matchFrame, rows *pageStore, visit func(rows []uint32)) {
	hay, ok := a.substring.Folded(&f.Frame)
	if !ok {
		return
	}
	if !a.substring.exact {
		a.visitBucket(f, rows, everyEventKey, visit)
	}
	f.startTextMarks()
	a.substring.ngrams.Find(hay, func(number uint32) {
		if f.markText(number) {
			a.visitBucket(f, rows, uint64(number), visit)
		}
	})
}

// searchSharedTexts visits the buckets of all texts of the event.
func (a *accessPath) searchSharedTexts(f *matchFrame, rows *pageStore, visit func(rows []uint32)) {
	a.visitBucket(f, rows, everyEventKey, visit)
	f.startTextMarks()
	a.sharedText.eachText(&f.Frame, func(text string) {
		if number := f.Texts.Number(text); number != 0 && f.markText(number) {
			a.visitBucket(f, rows, uint64(number), visit)
		}
	})
}

// eventKey returns the key of the bucket for the event; false if no row can match.
func (a *accessPath) eventKey(f *matchFrame) (key uint64, ok bool) {
	f.keyParts = f.keyParts[:0]
	for i := range a.equalities {
		part, ok := a.equalities[i].eventPart(&f.Frame)
		if !ok {
			return 0, false
		}
		f.keyParts = append(f.keyParts, part)
		if len(a.equalities) == 1 {
			key = part
		} else {
			key = hashMix(key, part)
		}
	}
	return key, true
}

// emitMatches adds the hits among rows; a is the single access path to them, or nil.
func (tb *table) emitMatches(f *matchFrame, a *accessPath, rows []uint32) {
	p := tb.plan
	if a != nil && a.covering {
		tb.addCoveredHits(f, rows)
		return
	}
	if a != nil && len(p.residuals) == 0 && len(a.equalities) < 2 {
		for _, row := range rows {
			tb.addHit(f, tb.store.page(row).owners[row&pageMask])
		}
		return
	}
	for _, row := range rows {
		pg := tb.store.page(row)
		f.Page, f.Row = &pg.ParamPage, int(row&pageMask)
		if (a == nil || a.isExactMatch(f)) && p.residualsHold(f) {
			tb.addHit(f, pg.owners[f.Row])
		}
	}
}

// addCoveredHits adds the owners of rows that match.
func (tb *table) addCoveredHits(f *matchFrame, places []uint32) {
	if tb.filters == nil && f.visit != nil {
		f.visit(places)
		return
	}
	for _, place := range places {
		tb.addHit(f, fanfare.RowID(place))
	}
}

// addHit adds the owner of a row that matches.
func (tb *table) addHit(f *matchFrame, place fanfare.RowID) {
	if tb.filters == nil {
		f.singleHits = append(f.singleHits, hitKey(place, tb.ruleNumber))
		return
	}
	if tb.conjunct != nil {
		f.scratch.candidates = append(f.scratch.candidates, uint32(place))
		return
	}
	f.addFilter(tb.filters.list[place])
}

// addFilter adds a filter that matches.
func (f *matchFrame) addFilter(fl *filter) {
	if failpoint.Fault("filters-lost") && len(fl.text)%8 == 7 {
		return
	}
	f.matchedFilters = append(f.matchedFilters, fl.number)
	f.addSubscriptions(fl)
}

// addSubscriptions adds the subscriptions of a filter.
func (f *matchFrame) addSubscriptions(fl *filter) {
	if fl.subscriptions != nil {
		f.filterHits = append(f.filterHits, fl.subscriptions)
	} else {
		f.singleHits = append(f.singleHits, hitKey(fl.single, noRule))
	}
}

// isExactMatch reports whether the row has the event's key, and not only the same hash.
func (a *accessPath) isExactMatch(f *matchFrame) bool {
	if len(a.equalities) > 1 {
		for i := range a.equalities {
			if f.keyParts[i] != a.equalities[i].rowPart(f.Page, f.Row) {
				return false
			}
		}
	}
	return true
}

func (p *plan) residualsHold(f *matchFrame) bool {
	for i := range p.residuals {
		if p.residuals[i].evalRow(f) != expr.True {
			return false
		}
	}
	return true
}

// A memo holds the epoch of the event and, in the lowest two bits, the truth.
const maxEpoch = 1 << 30

func (r *residual) evalRow(f *matchFrame) expr.Truth {
	if r.column < 0 {
		return r.Eval(&f.Frame)
	}
	text := f.Page.Texts[r.column][f.Row]
	memo := f.memo(r.memo)
	if known := memo[text]; known>>2 == f.epoch {
		if assert.Enabled {
			assert.True(r.Eval(&f.Frame) == expr.Truth(known&3), "the cached result for text %q is wrong: %v", f.Texts.At(text).Text, expr.Truth(known&3))
		}
		return expr.Truth(known & 3)
	}
	result := r.Eval(&f.Frame)
	memo[text] = f.epoch<<2 | uint32(result)
	return result
}

// memo returns the memo of a residual, with an element for every text.
func (f *matchFrame) memo(n int) []uint32 {
	for len(f.memos) <= n {
		f.memos = append(f.memos, nil)
	}
	if len(f.memos[n]) < f.Texts.Size() {
		f.memos[n] = make([]uint32, f.Texts.Size()+f.Texts.Size()/4)
	}
	return f.memos[n]
}
