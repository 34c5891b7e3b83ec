package condition

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/failpoint"
)

// search finds the rows of r that match.
func (r *table) search(f *matchFrame) {
	p := r.plan
	f.Page = nil
	if r.rowCount == 0 || p.eventPredicates.Eval(&f.Frame) != expr.True {
		return
	}
	if p.singlePath {
		w := p.guards[0][0]
		w.search(f, r.store, func(rows []uint32) {
			if assert.Enabled {
				r.assertRows(w, rows)
			}
			r.emitMatches(f, w, rows)
		})
		return
	}
	f.candidateRows = f.candidateRows[:0]
	for _, ways := range p.guards {
		for _, w := range ways {
			w.search(f, r.store, func(rows []uint32) { f.candidateRows = append(f.candidateRows, rows...) })
		}
	}
	slices.Sort(f.candidateRows)
	if assert.Enabled {
		r.assertGuarded(f)
	}
	r.emitMatches(f, nil, slices.Compact(f.candidateRows))
}

// search visits the rows to which w leads, or what they stand for (entire).
func (w *accessPath) search(f *matchFrame, rows *pageStore, visit func(rows []uint32)) {
	if w.eventPredicates.Eval(&f.Frame) != expr.True {
		return
	}
	switch {
	case w.substring != nil:
		w.searchSubstrings(f, rows, visit)
		return
	case w.sharedText != nil:
		w.searchSharedTexts(f, rows, visit)
		return
	}
	key, ok := w.eventKey(f)
	switch {
	case !ok:
	case w.grid != nil:
		w.grid.eachCellAt(&f.Frame, key, func(cell uint64) { w.visitBucket(f, rows, cell, visit) })
	default:
		w.visitBucket(f, rows, key, visit)
	}
}

// visitBucket visits those rows of a bucket that are in the span.
func (w *accessPath) visitBucket(f *matchFrame, rows *pageStore, key uint64, visit func(rows []uint32)) {
	b, known := w.buckets[key]
	if !known {
		return
	}
	if assert.Enabled {
		visit = w.assertBucket(f, rows, key, visit)
	}
	value := 0.0
	if w.rangeKey != nil {
		if w.rangeKey.crossing != nil {
			w.visitCrossed(f, rows, b, visit)
			return
		}
		v, _ := w.rangeKey.Load(&f.Frame)
		var ok bool
		if value, ok = expr.ToFloat(v); !ok {
			return
		}
	}
	switch {
	case b.bucket == nil:
		if w.rangeKey == nil || w.rangeKey.op.MatchesOrder(cmp.Compare(value, w.rangeValue(rows, b.row))) {
			f.single[0] = w.entry(rows, b.row)
			visit(f.single[:])
		}
	case w.rangeKey == nil:
		b.bucket.each(visit)
	default:
		b.bucket.eachInRange(value, w.rangeKey.op, visit)
	}
}

// searchSubstrings visits the buckets of all texts that occur in the event's.
func (w *accessPath) searchSubstrings(f *matchFrame, rows *pageStore, visit func(rows []uint32)) {
	hay, ok := w.substring.Folded(&f.Frame)
	if !ok {
		return
	}
	if !w.substring.exact {
		w.visitBucket(f, rows, everyEvent, visit)
	}
	f.startTextMarks()
	w.substring.ngrams.Find(hay, func(number uint32) {
		if f.markText(number) {
			w.visitBucket(f, rows, uint64(number), visit)
		}
	})
}

// searchSharedTexts visits the buckets of all texts that the event has where w looks for them.
func (w *accessPath) searchSharedTexts(f *matchFrame, rows *pageStore, visit func(rows []uint32)) {
	w.visitBucket(f, rows, everyEvent, visit)
	f.startTextMarks()
	w.sharedText.eachText(&f.Frame, func(text string) {
		if number := f.Texts.Number(text); number != 0 && f.markText(number) {
			w.visitBucket(f, rows, uint64(number), visit)
		}
	})
}

// eventKey is that of the bucket to which the event leads, if any can.
func (w *accessPath) eventKey(f *matchFrame) (key uint64, ok bool) {
	f.keyParts = f.keyParts[:0]
	for i := range w.equalities {
		part, ok := w.equalities[i].eventPart(&f.Frame)
		if !ok {
			return 0, false
		}
		f.keyParts = append(f.keyParts, part)
		if len(w.equalities) == 1 {
			key = part
		} else {
			key = hashMix(key, part)
		}
	}
	return key, true
}

// emitMatches keeps the hits among rows; w is the only way to them, or nil.
func (r *table) emitMatches(f *matchFrame, w *accessPath, rows []uint32) {
	p := r.plan
	if w != nil && w.covering {
		r.addCoveredHits(f, rows)
		return
	}
	if w != nil && len(p.residuals) == 0 && len(w.equalities) < 2 {
		for _, row := range rows {
			r.addHit(f, r.store.page(row).owners[row&pageMask])
		}
		return
	}
	for _, row := range rows {
		pg := r.store.page(row)
		f.Page, f.Row = &pg.ParamPage, int(row&pageMask)
		if (w == nil || w.isExactMatch(f)) && p.residualsHold(f) {
			r.addHit(f, pg.owners[f.Row])
		}
	}
}

// addCoveredHits keeps what rows that match stand for.
func (r *table) addCoveredHits(f *matchFrame, places []uint32) {
	if r.filters == nil && f.visit != nil {
		f.visit(places)
		return
	}
	for _, place := range places {
		r.addHit(f, fanfare.RowID(place))
	}
}

// addHit keeps what a row that matches stands for.
func (r *table) addHit(f *matchFrame, place fanfare.RowID) {
	if r.filters == nil {
		f.singleHits = append(f.singleHits, hitKey(place, r.ruleNumber))
		return
	}
	if r.conjunct != nil {
		f.scratch.candidates = append(f.scratch.candidates, uint32(place))
		return
	}
	f.addFilter(r.filters.list[place])
}

// addFilter keeps a filter that matches.
func (f *matchFrame) addFilter(fl *filter) {
	if failpoint.Fault("filters-lost") && len(fl.text)%8 == 7 {
		return
	}
	f.matchedFilters = append(f.matchedFilters, fl.number)
	f.addSubscriptions(fl)
}

// addSubscriptions keeps the subscriptions of a filter.
func (f *matchFrame) addSubscriptions(fl *filter) {
	if fl.subscriptions != nil {
		f.filterHits = append(f.filterHits, fl.subscriptions)
	} else {
		f.singleHits = append(f.singleHits, hitKey(fl.single, noRule))
	}
}

// isExactMatch reports whether the row is in its bucket for its key and not for the hash.
func (w *accessPath) isExactMatch(f *matchFrame) bool {
	if len(w.equalities) > 1 {
		for i := range w.equalities {
			if f.keyParts[i] != w.equalities[i].rowPart(f.Page, f.Row) {
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

// Memos hold the epoch of the event and, in the lowest two bits, the truth.
const maxEpoch = 1 << 30

func (r *residual) evalRow(f *matchFrame) expr.Truth {
	if r.column < 0 {
		return r.Eval(&f.Frame)
	}
	text := f.Page.Texts[r.column][f.Row]
	memo := f.memo(r.memo)
	if known := memo[text]; known>>2 == f.epoch {
		if assert.Enabled {
			assert.That(r.Eval(&f.Frame) == expr.Truth(known&3), "text %q made a residual %v before", f.Texts.At(text).Text, expr.Truth(known&3))
		}
		return expr.Truth(known & 3)
	}
	result := r.Eval(&f.Frame)
	memo[text] = f.epoch<<2 | uint32(result)
	return result
}

// memo returns the memo of a residual, with room for every text.
func (f *matchFrame) memo(n int) []uint32 {
	for len(f.memos) <= n {
		f.memos = append(f.memos, nil)
	}
	if len(f.memos[n]) < f.Texts.Size() {
		f.memos[n] = make([]uint32, f.Texts.Size()+f.Texts.Size()/4)
	}
	return f.memos[n]
}
