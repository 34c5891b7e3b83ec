package condition

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"fanfare.dev/fanfare"
)

// match appends the hits of an event, ordered by place.
func (t *topic) match(event *Event, hits []Hit) ([]Hit, error) {
	err := t.search(event, nil, func(f *matchFrame) { hits = t.collect(f, hits) })
	return hits, err
}

// eachPlace visits the places of the hits of an event, each once.
func (t *topic) eachPlace(event *Event, visit func(places []uint32)) error {
	return t.search(event, visit, func(f *matchFrame) { f.handOut(visit) })
}

// search searches all conditions, and hands the frame with the hits to found. Whole runs
// of places go to visit before, if that is given.
func (t *topic) search(event *Event, visit func([]uint32), found func(*matchFrame)) error {
	f := t.frames.Get().(*matchFrame)
	defer t.frames.Put(f)
	t.mu.RLock()
	defer t.mu.RUnlock()
	shape := t.compiled.Load().filterScope.event
	f.begin(event, t.texts, t.paths.values.size)
	f.previous.begin(event.Previous, shape, &t.paths.members)
	f.visit = visit
	t.checker.begin(f)
	defer f.end()
	if err := f.data.scan(event.Data, shape, t.paths.members.used, t.paths.members.size); err != nil {
		return err
	}

	for _, form := range t.filters.shapes {
		form.search(f)
	}
	t.filters.searchConjunctions(f)
	for _, r := range t.rules {
		r.search(f)
	}
	t.checker.check(t, f, event)
	found(f)
	return nil
}

// handOut visits the places that are kept in f, in runs as long as its buffer.
func (f *matchFrame) handOut(visit func(places []uint32)) {
	buffer := f.placeBuffer()
	for _, places := range f.filterHits {
		many := places.ManyIterator()
		for n := many.NextMany(buffer); n > 0; n = many.NextMany(buffer) {
			visit(buffer[:n])
		}
	}
	for keys := f.singleHits; len(keys) > 0; {
		n := min(len(keys), len(buffer))
		for i, key := range keys[:n] {
			buffer[i] = uint32(key >> ruleBits)
		}
		visit(buffer[:n])
		keys = keys[n:]
	}
}

// placeBuffer is for places on their way out.
func (f *matchFrame) placeBuffer() []uint32 {
	if f.buffer == nil {
		f.buffer = make([]uint32, 1024)
	}
	return f.buffer
}

// collect merges the subscriptions of the filters that matched and the single hits. A
// subscription has one condition, so none is in both.
func (t *topic) collect(f *matchFrame, hits []Hit) []Hit {
	var places *roaring.Bitmap
	if len(f.filterHits) == 1 {
		places = f.filterHits[0]
	} else {
		places = roaring.FastOr(f.filterHits...)
	}
	rules := f.sortSingleHits()
	hits = slices.Grow(hits, int(places.GetCardinality())+len(rules))
	w := hitWriter{columns: t.columns, hits: hits}
	many, buffer := places.ManyIterator(), f.placeBuffer()
	for n := many.NextMany(buffer); n > 0; n = many.NextMany(buffer) {
		for _, place := range buffer[:n] {
			for len(rules) > 0 && uint32(rules[0]>>ruleBits) < place {
				w.write(placeAndRule(rules[0]))
				rules = rules[1:]
			}
			w.write(fanfare.RowID(place), noRule)
		}
	}
	for _, key := range rules {
		w.write(placeAndRule(key))
	}
	return w.hits
}

// A hitWriter looks up what a hit tells, page by page. Its hits have room for all.
type hitWriter struct {
	columns *subscriptionColumns
	page    *columnPage
	slots   *slotPage
	number  fanfare.RowID // of the page, and its partition
	hits    []Hit
}

func (w *hitWriter) write(p fanfare.RowID, rule int16) {
	if number := p >> pageBits; w.page == nil || number != w.number {
		at := w.columns.entry(p)
		w.page, w.slots, w.number = at.page.Load(), at.slots.Load(), number
	}
	at := p & pageMask
	// Member by member: what is put together first and copied then takes twice the time.
	last := len(w.hits)
	w.hits = w.hits[:last+1]
	hit := &w.hits[last]
	hit.Place, hit.Subscriber, hit.Channel, hit.Rule, hit.Slot = p, w.page.subscribers[at], w.page.channels[at], rule, 0
	if w.slots != nil {
		hit.Slot = w.slots[at]
	}
}

// ruleBits is how much of a hit's key names the rule; the place stands above.
const ruleBits = 16

func hitKey(p fanfare.RowID, rule int16) uint64 { return uint64(p)<<ruleBits | uint64(uint16(rule)) }

func placeAndRule(key uint64) (fanfare.RowID, int16) {
	return fanfare.RowID(key >> ruleBits), int16(key & (1<<ruleBits - 1))
}

// radixFrom is the number of hits from which a radix sort is the quicker one.
const radixFrom = 512

// sortSingleHits orders the rule hits by place.
func (f *matchFrame) sortSingleHits() []uint64 {
	if len(f.singleHits) < radixFrom {
		slices.Sort(f.singleHits)
		return f.singleHits
	}
	// Three passes of eleven bits cover the 32 bits of a place.
	const bits, passes = 11, 3
	f.sortBuffer = slices.Grow(f.sortBuffer[:0], len(f.singleHits))[:len(f.singleHits)]
	for pass := range passes {
		shift := ruleBits + pass*bits
		var starts [1 << bits]int
		for _, key := range f.singleHits {
			starts[key>>shift&(1<<bits-1)]++
		}
		next := 0
		for i, count := range starts {
			starts[i] = next
			next += count
		}
		for _, key := range f.singleHits {
			digit := key >> shift & (1<<bits - 1)
			f.sortBuffer[starts[digit]] = key
			starts[digit]++
		}
		f.singleHits, f.sortBuffer = f.sortBuffer, f.singleHits
	}
	return f.singleHits
}
