package match

import (
	"encoding/json"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"fanfare.dev/fanfare"
)

// match appends the hits of an event, ordered by place.
func (t *topic) match(data json.RawMessage, hits []Hit) ([]Hit, error) {
	c := t.compile.Load()
	event, err := decode(data, c.filters.event)
	if err != nil {
		return hits, err
	}
	f := t.frames.Get().(*frame)
	defer t.frames.Put(f)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if now := t.compile.Load(); now != c { // redefined while we read: its numbers may be others
		event, _ = decode(data, now.filters.event)
	}
	f.begin(event, t.texts, t.paths.size)
	defer f.end()

	matched := f.matched[:0]
	for _, fl := range t.filters.list {
		if fl != nil && fl.test.eval(f) == yes {
			matched = append(matched, fl.places)
		}
	}
	for _, r := range t.rules {
		r.search(f)
	}
	hits = t.collect(f, matched, hits)
	clear(matched)
	f.matched = matched
	return hits, nil
}

// collect merges the subscriptions of the matched filters and the rule hits. A
// subscription has one condition, so none is in both.
func (t *topic) collect(f *frame, matched []*roaring.Bitmap, hits []Hit) []Hit {
	var places *roaring.Bitmap
	if len(matched) == 1 {
		places = matched[0]
	} else {
		places = roaring.FastOr(matched...)
	}
	rules := f.sortFound()
	hits = slices.Grow(hits, int(places.GetCardinality())+len(rules))
	w := hitWriter{columns: t.columns, hits: hits}
	many := places.ManyIterator()
	for n := many.NextMany(f.buffer[:]); n > 0; n = many.NextMany(f.buffer[:]) {
		for _, place := range f.buffer[:n] {
			for len(rules) > 0 && uint32(rules[0]>>ruleBits) < place {
				w.write(placeAndRule(rules[0]))
				rules = rules[1:]
			}
			w.write(fanfare.Place(place), -1)
		}
	}
	for _, key := range rules {
		w.write(placeAndRule(key))
	}
	return w.hits
}

// A hitWriter looks up what a hit tells, page by page.
type hitWriter struct {
	columns *columns
	page    *columnPage
	number  fanfare.Place // of the page, and its partition
	hits    []Hit
}

func (w *hitWriter) write(p fanfare.Place, rule int16) {
	if number := p >> pageBits; w.page == nil || number != w.number {
		w.page, w.number = w.columns.page(p), number
	}
	at := p & pageMask
	w.hits = append(w.hits, Hit{Place: p, Subscriber: w.page.subscribers[at], Channel: w.page.channels[at], Rule: rule})
}

// ruleBits is how much of a hit's key names the rule; the place stands above.
const ruleBits = 16

func hitKey(p fanfare.Place, rule int16) uint64 { return uint64(p)<<ruleBits | uint64(rule) }

func placeAndRule(key uint64) (fanfare.Place, int16) {
	return fanfare.Place(key >> ruleBits), int16(key & (1<<ruleBits - 1))
}

// radixFrom is the number of hits from which a radix sort is the quicker one.
const radixFrom = 512

// sortFound orders the rule hits by place.
func (f *frame) sortFound() []uint64 {
	if len(f.found) < radixFrom {
		slices.Sort(f.found)
		return f.found
	}
	// Three passes of eleven bits cover the 32 bits of a place.
	const bits, passes = 11, 3
	f.spare = slices.Grow(f.spare[:0], len(f.found))[:len(f.found)]
	for pass := range passes {
		shift := ruleBits + pass*bits
		var starts [1 << bits]int
		for _, key := range f.found {
			starts[key>>shift&(1<<bits-1)]++
		}
		next := 0
		for i, count := range starts {
			starts[i] = next
			next += count
		}
		for _, key := range f.found {
			digit := key >> shift & (1<<bits - 1)
			f.spare[starts[digit]] = key
			starts[digit]++
		}
		f.found, f.spare = f.spare, f.found
	}
	return f.found
}
