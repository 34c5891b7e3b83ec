package condition

import (
	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// everyEventKey is the key of the bucket of rows without a text, where texts are the keys: no text
// has this number.
const everyEventKey = 0

// rowIndexer puts the rows of a table on their access paths, and removes them.
type rowIndexer struct {
	pages *pageStore
	texts *expr.TextTable
	frame expr.Frame // holds the row, for rowPredicates
	keys  []uint64
	level level // of the cell, if the access path has a grid
}

// seek moves ix to a row.
func (ix *rowIndexer) seek(row uint32) {
	ix.frame.Texts, ix.frame.Page, ix.frame.Row = ix.texts, &ix.pages.page(row).ParamPage, int(row&pageMask)
	ix.frame.DecodedParams = expr.DecodedParams{}
}

// insert puts a row on a.
func (ix *rowIndexer) insert(a *accessPath, row uint32) {
	ix.seek(row)
	for _, key := range ix.keysOf(a) {
		if a.grid != nil {
			a.grid.countRows(ix.level, 1)
		}
		ref, known := a.buckets[key]
		switch {
		case !known:
			a.buckets[key] = bucketRef{row: row}
			if a.substring != nil && key != everyEventKey {
				a.substring.ngrams.Add(ix.texts.At(uint32(key)).Folded, uint32(key))
			}
			continue
		case ref.bucket == nil:
			ref.bucket = &bucket{ranged: a.rangeKey != nil}
			ref.bucket.insert(a.rowRangeValue(ix.pages, ref.row), a.entry(ix.pages, ref.row))
			a.buckets[key] = bucketRef{bucket: ref.bucket}
		}
		ref.bucket.insert(a.rowRangeValue(ix.pages, row), a.entry(ix.pages, row))
	}
}

// remove removes a row from a.
func (ix *rowIndexer) remove(a *accessPath, row uint32) {
	ix.seek(row)
	for _, key := range ix.keysOf(a) {
		if a.grid != nil {
			a.grid.countRows(ix.level, -1)
		}
		if assert.Enabled {
			ref, known := a.buckets[key]
			assert.True(known && (ref.bucket != nil || ref.row == row), "row %d is not in the access path from which it is removed, by key %d", row, key)
		}
		if many := a.buckets[key].bucket; many == nil || many.remove(a.rowRangeValue(ix.pages, row), a.entry(ix.pages, row)) {
			delete(a.buckets, key)
			if a.substring != nil && key != everyEventKey {
				a.substring.ngrams.Remove(ix.texts.At(uint32(key)).Folded, uint32(key))
			}
		}
	}
}

// everyEventCost makes a row avoid an access path that leads to it for every event.
const everyEventCost = 1 << 30

// cost returns the number of rows that share the buckets of a row on a: the search visits them
// together.
func (ix *rowIndexer) cost(a *accessPath, row uint32) (n int) {
	ix.seek(row)
	for _, key := range ix.keysOf(a) {
		if ref, known := a.buckets[key]; known {
			n += ref.size()
		}
		if key == everyEventKey && !a.hasKey() {
			n += everyEventCost
		}
	}
	return n
}

// rowRangeValue returns the position of a row in its buckets.
func (a *accessPath) rowRangeValue(rows *pageStore, row uint32) float64 {
	if a.rangeKey == nil {
		return 0
	}
	return rows.page(row).Numbers[a.rangeKey.column][row&pageMask]
}

// keysOf returns the keys of the buckets of the row; none if it is not on the access path.
func (ix *rowIndexer) keysOf(a *accessPath) []uint64 {
	ix.keys = ix.keys[:0]
	if a.rowPredicates.Eval(&ix.frame) != expr.True {
		return nil
	}
	pg, row := ix.frame.Page, ix.frame.Row
	switch {
	case a.grid != nil:
		if key, on, ok := a.grid.keyOf(a.rowKey(pg, row), pg, row); ok {
			ix.keys, ix.level = append(ix.keys, key), on
		}
	case len(a.equalities) > 0:
		ix.keys = append(ix.keys, a.rowKey(pg, row))
	case a.hasListParam():
		ix.listKeys(a)
	case a.substring != nil:
		n := pg.Texts[a.substring.param.Column][row]
		if ix.texts.At(n).Folded != "" {
			ix.keys = append(ix.keys, uint64(n))
		} else if !a.substring.exact { // every text contains the empty one
			ix.keys = append(ix.keys, everyEventKey)
		}
	case a.sharedText != nil:
		ix.keys = append(ix.keys, uint64(pg.Texts[a.sharedText.param.Column][row]))
	default:
		ix.keys = append(ix.keys, everyEventKey)
	}
	return ix.keys
}

// rowKey combines the row's parts of the equalities; it is 0 without any.
func (a *accessPath) rowKey(p *expr.ParamPage, row int) (key uint64) {
	if len(a.equalities) == 1 {
		return a.equalities[0].rowPart(p, row)
	}
	for i := range a.equalities {
		key = hashMix(key, a.equalities[i].rowPart(p, row))
	}
	return key
}

// hasListParam reports whether the rows of a have lists and are in a bucket for each of their
// texts.
func (a *accessPath) hasListParam() bool {
	return a.sharedText != nil && a.sharedText.param.Kind == lang.KindList || a.substring != nil && a.substring.param.Kind == lang.KindList
}

func (ix *rowIndexer) listKeys(a *accessPath) {
	var of lang.Param
	every := false
	if a.sharedText != nil {
		of, every = a.sharedText.param, a.sharedText.all
	} else {
		of = a.substring.param
	}
	numbers := ix.texts.ListNumbers(ix.frame.Page.Texts[of.Column][ix.frame.Row])
	if every {
		if len(numbers) == 0 { // all() over no elements is true
			ix.keys = append(ix.keys, everyEventKey)
			return
		}
		numbers = numbers[:1]
	}
	for _, n := range numbers {
		if a.substring == nil || ix.texts.At(n).Folded != "" { // contains_ci is false for the empty text
			ix.keys = append(ix.keys, uint64(n))
		}
	}
}
