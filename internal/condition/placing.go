package condition

// everyEvent is the bucket of rows to which no text leads, where texts are the
// keys: it is no text's number.
const everyEvent = 0

// placing puts the rows of one rule on their ways, and takes them off.
type placing struct {
	rows  *rows
	texts *texts
	frame frame // of the row, for statics
	keys  []uint64
	level level // of the cell, where the way has such
}

// at makes p ready for a row.
func (p *placing) at(row uint32) {
	p.frame.texts, p.frame.page, p.frame.row = p.texts, p.rows.page(row), int(row&pageMask)
	p.frame.sub = subscriptionParams{}
}

// insert puts a row on w.
func (p *placing) insert(w *way, row uint32) {
	p.at(row)
	for _, key := range p.keysOf(w) {
		if w.cells != nil {
			w.cells.count(p.level, 1)
		}
		h, known := w.buckets[key]
		switch {
		case !known:
			w.buckets[key] = handle{row: row}
			if w.needle != nil && key != everyEvent {
				w.needle.texts.add(p.texts.at(uint32(key)).folded, uint32(key))
			}
			continue
		case h.many == nil:
			h.many = &bucket{ranged: w.span != nil}
			h.many.insert(w.order(p.rows, h.row), w.filed(p.rows, h.row))
			w.buckets[key] = handle{many: h.many}
		}
		h.many.insert(w.order(p.rows, row), w.filed(p.rows, row))
	}
}

// remove takes a row off w.
func (p *placing) remove(w *way, row uint32) {
	p.at(row)
	for _, key := range p.keysOf(w) {
		if w.cells != nil {
			w.cells.count(p.level, -1)
		}
		if assertions {
			h, known := w.buckets[key]
			assert(known && (h.many != nil || h.row == row), "row %d is taken off a way on which it is not, by key %d", row, key)
		}
		if many := w.buckets[key].many; many == nil || many.remove(w.order(p.rows, row), w.filed(p.rows, row)) {
			delete(w.buckets, key)
			if w.needle != nil && key != everyEvent {
				w.needle.texts.drop(p.texts.at(uint32(key)).folded, uint32(key))
			}
		}
	}
}

// everywhereCost keeps a row off a way that leads to it with every event, where there
// is another one.
const everywhereCost = 1 << 30

// cost is how many rows share the buckets of a row that would be put on w, and
// so are looked at together with it.
func (p *placing) cost(w *way, row uint32) (n int) {
	p.at(row)
	for _, key := range p.keysOf(w) {
		if h, known := w.buckets[key]; known {
			n += h.size()
		}
		if key == everyEvent && !w.ordered() {
			n += everywhereCost
		}
	}
	return n
}

// order is where a row stands in its buckets.
func (w *way) order(rows *rows, row uint32) float64 {
	if w.span == nil {
		return 0
	}
	return rows.page(row).numbers[w.span.column][row&pageMask]
}

// keysOf returns the keys of the buckets in which the row is, none where it is
// not on the way.
func (p *placing) keysOf(w *way) []uint64 {
	p.keys = p.keys[:0]
	if w.statics.eval(&p.frame) != yes {
		return nil
	}
	pg, row := p.frame.page, p.frame.row
	switch {
	case w.cells != nil:
		if key, on, ok := w.cells.keyOf(w.equalityKey(pg, row), pg, row); ok {
			p.keys, p.level = append(p.keys, key), on
		}
	case len(w.equalities) > 0:
		p.keys = append(p.keys, w.equalityKey(pg, row))
	case w.listed():
		p.listKeys(w)
	case w.needle != nil:
		n := pg.texts[w.needle.param.column][row]
		if p.texts.at(n).folded != "" {
			p.keys = append(p.keys, uint64(n))
		} else if !w.needle.exact { // every text contains it
			p.keys = append(p.keys, everyEvent)
		}
	case w.probe != nil:
		p.keys = append(p.keys, uint64(pg.texts[w.probe.param.column][row]))
	default:
		p.keys = append(p.keys, everyEvent)
	}
	return p.keys
}

// equalityKey joins the parts of a row's equalities; it is 0 without any.
func (w *way) equalityKey(p *page, row int) (key uint64) {
	if len(w.equalities) == 1 {
		return w.equalities[0].part(p, row)
	}
	for i := range w.equalities {
		key = mix(key, w.equalities[i].part(p, row))
	}
	return key
}

// listed reports whether the rows of w have lists, and each is in a bucket for
// each of its texts.
func (w *way) listed() bool {
	return w.probe != nil && w.probe.param.kind == kindList || w.needle != nil && w.needle.param.kind == kindList
}

func (p *placing) listKeys(w *way) {
	var of param
	every := false
	if w.probe != nil {
		of, every = w.probe.param, w.probe.every
	} else {
		of = w.needle.param
	}
	numbers := p.texts.lists[p.frame.page.texts[of.column][p.frame.row]].numbers
	if every {
		if len(numbers) == 0 { // all of none
			p.keys = append(p.keys, everyEvent)
			return
		}
		numbers = numbers[:1]
	}
	for _, n := range numbers {
		if w.needle == nil || p.texts.at(n).folded != "" { // nothing contains the empty text
			p.keys = append(p.keys, uint64(n))
		}
	}
}
