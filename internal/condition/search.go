package condition

import (
	"cmp"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
)

// search finds the rows of r that match.
func (r *rule) search(f *frame) {
	p := r.plan
	f.page = nil
	if r.live == 0 || p.gates.eval(f) != yes {
		return
	}
	if p.direct {
		w := p.guards[0][0]
		w.follow(f, r.rows, func(rows []uint32) {
			if assertions {
				r.assertRows(w, rows)
			}
			r.emit(f, w, rows)
		})
		return
	}
	f.rows = f.rows[:0]
	for _, ways := range p.guards {
		for _, w := range ways {
			w.follow(f, r.rows, func(rows []uint32) { f.rows = append(f.rows, rows...) })
		}
	}
	slices.Sort(f.rows)
	if assertions {
		r.assertGuarded(f)
	}
	r.emit(f, nil, slices.Compact(f.rows))
}

// follow visits the rows to which w leads, or what they stand for (entire).
func (w *way) follow(f *frame, rows *rows, visit func(rows []uint32)) {
	if w.gates.eval(f) != yes {
		return
	}
	switch {
	case w.needle != nil:
		w.seek(f, rows, visit)
		return
	case w.probe != nil:
		w.ask(f, rows, visit)
		return
	}
	key, ok := w.key(f)
	switch {
	case !ok:
	case w.cells != nil:
		w.cells.around(f, key, func(cell uint64) { w.visit(f, rows, cell, visit) })
	default:
		w.visit(f, rows, key, visit)
	}
}

// visit visits those rows of a bucket that are in the span.
func (w *way) visit(f *frame, rows *rows, key uint64, visit func(rows []uint32)) {
	b, known := w.buckets[key]
	if !known {
		return
	}
	if assertions {
		visit = w.assertBucket(f, rows, key, visit)
	}
	value := 0.0
	if w.span != nil {
		if w.span.crossed != nil {
			w.visitCrossed(f, rows, b, visit)
			return
		}
		v, _ := w.span.load(f)
		var ok bool
		if value, ok = toFloat(v); !ok {
			return
		}
	}
	switch {
	case b.many == nil:
		if w.span == nil || w.span.op.holds(cmp.Compare(value, w.order(rows, b.row))) {
			f.one[0] = w.filed(rows, b.row)
			visit(f.one[:])
		}
	case w.span == nil:
		b.many.all(visit)
	default:
		b.many.span(value, w.span.op, visit)
	}
}

// seek visits the buckets of all texts that occur in the event's.
func (w *way) seek(f *frame, rows *rows, visit func(rows []uint32)) {
	hay, ok := w.needle.folded(f)
	if !ok {
		return
	}
	if !w.needle.exact {
		w.visit(f, rows, everyEvent, visit)
	}
	f.mark()
	w.needle.texts.in(hay, func(number uint32) {
		if f.first(number) {
			w.visit(f, rows, uint64(number), visit)
		}
	})
}

// ask visits the buckets of all texts that the event has where w looks for them.
func (w *way) ask(f *frame, rows *rows, visit func(rows []uint32)) {
	w.visit(f, rows, everyEvent, visit)
	f.mark()
	w.probe.texts(f, func(text string) {
		if number := f.texts.number(text); number != 0 && f.first(number) {
			w.visit(f, rows, uint64(number), visit)
		}
	})
}

// key is that of the bucket to which the event leads, if any can.
func (w *way) key(f *frame) (key uint64, ok bool) {
	f.parts = f.parts[:0]
	for i := range w.equalities {
		part, ok := w.equalities[i].partOf(f)
		if !ok {
			return 0, false
		}
		f.parts = append(f.parts, part)
		if len(w.equalities) == 1 {
			key = part
		} else {
			key = mix(key, part)
		}
	}
	return key, true
}

// emit keeps the hits among rows; w is the only way to them, or nil.
func (r *rule) emit(f *frame, w *way, rows []uint32) {
	p := r.plan
	if w != nil && w.entire {
		r.hits(f, rows)
		return
	}
	if w != nil && len(p.residuals) == 0 && len(w.equalities) < 2 {
		for _, row := range rows {
			r.hit(f, r.rows.page(row).places[row&pageMask])
		}
		return
	}
	for _, row := range rows {
		f.page, f.row = r.rows.page(row), int(row&pageMask)
		if (w == nil || w.isOf(f)) && p.residualsHold(f) {
			r.hit(f, f.page.places[f.row])
		}
	}
}

// hits keeps what rows that match stand for.
func (r *rule) hits(f *frame, places []uint32) {
	if r.filters == nil && f.visit != nil {
		f.visit(places)
		return
	}
	for _, place := range places {
		r.hit(f, fanfare.RowID(place))
	}
}

// hit keeps what a row that matches stands for.
func (r *rule) hit(f *frame, place fanfare.RowID) {
	if r.filters == nil {
		f.found = append(f.found, hitKey(place, r.order))
		return
	}
	if r.term != nil {
		f.lookout.candidates = append(f.lookout.candidates, uint32(place))
		return
	}
	f.take(r.filters.list[place])
}

// take keeps a filter that matches.
func (f *frame) take(fl *filter) {
	if failpoint.Fault("filters-lost") && len(fl.text)%8 == 7 {
		return
	}
	f.filters = append(f.filters, fl.number)
	f.keep(fl)
}

// keep keeps the subscriptions of a filter.
func (f *frame) keep(fl *filter) {
	if fl.places != nil {
		f.matched = append(f.matched, fl.places)
	} else {
		f.found = append(f.found, hitKey(fl.only, noRule))
	}
}

// isOf reports whether the row is in its bucket for its key and not for the hash.
func (w *way) isOf(f *frame) bool {
	if len(w.equalities) > 1 {
		for i := range w.equalities {
			if f.parts[i] != w.equalities[i].part(f.page, f.row) {
				return false
			}
		}
	}
	return true
}

func (p *plan) residualsHold(f *frame) bool {
	for i := range p.residuals {
		if p.residuals[i].evalRow(f) != yes {
			return false
		}
	}
	return true
}

// Memos hold the epoch of the event and, in the lowest two bits, the truth.
const maxEpoch = 1 << 30

func (r *residual) evalRow(f *frame) truth {
	if r.column < 0 {
		return r.eval(f)
	}
	text := f.page.texts[r.column][f.row]
	memo := f.memo(r.memo)
	if known := memo[text]; known>>2 == f.epoch {
		if assertions {
			assert(r.eval(f) == truth(known&3), "text %q made a residual %v before", f.texts.at(text).text, truth(known&3))
		}
		return truth(known & 3)
	}
	result := r.eval(f)
	memo[text] = f.epoch<<2 | uint32(result)
	return result
}

// memo returns the memo of a residual, with room for every text.
func (f *frame) memo(n int) []uint32 {
	for len(f.memos) <= n {
		f.memos = append(f.memos, nil)
	}
	if len(f.memos[n]) < len(f.texts.list) {
		f.memos[n] = make([]uint32, len(f.texts.list)+len(f.texts.list)/4)
	}
	return f.memos[n]
}
