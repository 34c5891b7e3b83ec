package match

// search puts the places of r's rows that match into f.found.
func (r *rule) search(f *frame) {
	p := r.plan
	f.page = nil
	if r.live == 0 || p.gates.eval(f) != yes {
		return
	}
	b := p.bucketOf(f)
	if b == nil {
		return
	}
	visit := func(rows []uint32) { r.emit(f, rows) }
	if p.span == nil {
		b.all(visit)
		return
	}
	v, _ := p.span.load(f)
	if value, ok := toFloat(v); ok {
		b.span(value, p.span.op, visit)
	}
}

// bucketOf returns the bucket whose key the event has, or nil.
func (p *plan) bucketOf(f *frame) *bucket {
	var key uint64
	f.parts = f.parts[:0]
	for i := range p.equalities {
		part, ok := p.equalities[i].partOf(f)
		if !ok {
			return nil
		}
		f.parts = append(f.parts, part)
		if len(p.equalities) == 1 {
			key = part
		} else {
			key = mix(key, part)
		}
	}
	return p.buckets[key]
}

// emit appends the hits among rows.
func (r *rule) emit(f *frame, rows []uint32) {
	p := r.plan
	if len(p.residuals) == 0 && len(p.equalities) < 2 {
		for _, row := range rows {
			f.found = append(f.found, hitKey(r.rows.page(row).places[row&pageMask], r.order))
		}
		return
	}
	for _, row := range rows {
		f.page, f.row = r.rows.page(row), int(row&pageMask)
		if p.rowMatches(f) {
			f.found = append(f.found, hitKey(f.page.places[f.row], r.order))
		}
	}
}

func (p *plan) rowMatches(f *frame) bool {
	if len(p.equalities) > 1 {
		for i := range p.equalities {
			if f.parts[i] != p.equalities[i].part(f.page, f.row) {
				return false
			}
		}
	}
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
