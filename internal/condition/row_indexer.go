package condition

import (
	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// everyEvent is the bucket of rows to which no text leads, where texts are the
// keys: it is no text's number.
const everyEvent = 0

// rowIndexer puts the rows of one rule on their ways, and takes them off.
type rowIndexer struct {
	pages *pageStore
	texts *expr.TextTable
	frame expr.Frame // of the row, for statics
	keys  []uint64
	level level // of the cell, where the way has such
}

// seek makes p ready for a row.
func (p *rowIndexer) seek(row uint32) {
	p.frame.Texts, p.frame.Page, p.frame.Row = p.texts, &p.pages.page(row).ParamPage, int(row&pageMask)
	p.frame.DecodedParams = expr.DecodedParams{}
}

// insert puts a row on w.
func (p *rowIndexer) insert(w *accessPath, row uint32) {
	p.seek(row)
	for _, key := range p.keysOf(w) {
		if w.grid != nil {
			w.grid.countRows(p.level, 1)
		}
		h, known := w.buckets[key]
		switch {
		case !known:
			w.buckets[key] = bucketRef{row: row}
			if w.substring != nil && key != everyEvent {
				w.substring.ngrams.Add(p.texts.At(uint32(key)).Folded, uint32(key))
			}
			continue
		case h.bucket == nil:
			h.bucket = &bucket{ranged: w.rangeKey != nil}
			h.bucket.insert(w.rangeValue(p.pages, h.row), w.entry(p.pages, h.row))
			w.buckets[key] = bucketRef{bucket: h.bucket}
		}
		h.bucket.insert(w.rangeValue(p.pages, row), w.entry(p.pages, row))
	}
}

// remove takes a row off w.
func (p *rowIndexer) remove(w *accessPath, row uint32) {
	p.seek(row)
	for _, key := range p.keysOf(w) {
		if w.grid != nil {
			w.grid.countRows(p.level, -1)
		}
		if assert.Enabled {
			h, known := w.buckets[key]
			assert.That(known && (h.bucket != nil || h.row == row), "row %d is taken off a way on which it is not, by key %d", row, key)
		}
		if many := w.buckets[key].bucket; many == nil || many.remove(w.rangeValue(p.pages, row), w.entry(p.pages, row)) {
			delete(w.buckets, key)
			if w.substring != nil && key != everyEvent {
				w.substring.ngrams.Remove(p.texts.At(uint32(key)).Folded, uint32(key))
			}
		}
	}
}

// everyEventCost keeps a row off a way that leads to it with every event, where there
// is another one.
const everyEventCost = 1 << 30

// cost is how many rows share the buckets of a row that would be put on w, and
// so are looked at together with it.
func (p *rowIndexer) cost(w *accessPath, row uint32) (n int) {
	p.seek(row)
	for _, key := range p.keysOf(w) {
		if h, known := w.buckets[key]; known {
			n += h.size()
		}
		if key == everyEvent && !w.hasKey() {
			n += everyEventCost
		}
	}
	return n
}

// rangeValue is where a row stands in its buckets.
func (w *accessPath) rangeValue(rows *pageStore, row uint32) float64 {
	if w.rangeKey == nil {
		return 0
	}
	return rows.page(row).Numbers[w.rangeKey.column][row&pageMask]
}

// keysOf returns the keys of the buckets in which the row is, none where it is
// not on the way.
func (p *rowIndexer) keysOf(w *accessPath) []uint64 {
	p.keys = p.keys[:0]
	if w.rowPredicates.Eval(&p.frame) != expr.True {
		return nil
	}
	pg, row := p.frame.Page, p.frame.Row
	switch {
	case w.grid != nil:
		if key, on, ok := w.grid.keyOf(w.rowKey(pg, row), pg, row); ok {
			p.keys, p.level = append(p.keys, key), on
		}
	case len(w.equalities) > 0:
		p.keys = append(p.keys, w.rowKey(pg, row))
	case w.hasListParam():
		p.listKeys(w)
	case w.substring != nil:
		n := pg.Texts[w.substring.param.Column][row]
		if p.texts.At(n).Folded != "" {
			p.keys = append(p.keys, uint64(n))
		} else if !w.substring.exact { // every text contains it
			p.keys = append(p.keys, everyEvent)
		}
	case w.sharedText != nil:
		p.keys = append(p.keys, uint64(pg.Texts[w.sharedText.param.Column][row]))
	default:
		p.keys = append(p.keys, everyEvent)
	}
	return p.keys
}

// rowKey joins the parts of a row's equalities; it is 0 without any.
func (w *accessPath) rowKey(p *expr.ParamPage, row int) (key uint64) {
	if len(w.equalities) == 1 {
		return w.equalities[0].rowPart(p, row)
	}
	for i := range w.equalities {
		key = hashMix(key, w.equalities[i].rowPart(p, row))
	}
	return key
}

// hasListParam reports whether the rows of w have lists, and each is in a bucket for
// each of its texts.
func (w *accessPath) hasListParam() bool {
	return w.sharedText != nil && w.sharedText.param.Kind == lang.KindList || w.substring != nil && w.substring.param.Kind == lang.KindList
}

func (p *rowIndexer) listKeys(w *accessPath) {
	var of lang.Param
	every := false
	if w.sharedText != nil {
		of, every = w.sharedText.param, w.sharedText.all
	} else {
		of = w.substring.param
	}
	numbers := p.texts.ListNumbers(p.frame.Page.Texts[of.Column][p.frame.Row])
	if every {
		if len(numbers) == 0 { // all of none
			p.keys = append(p.keys, everyEvent)
			return
		}
		numbers = numbers[:1]
	}
	for _, n := range numbers {
		if w.substring == nil || p.texts.At(n).Folded != "" { // nothing contains the empty text
			p.keys = append(p.keys, uint64(n))
		}
	}
}
