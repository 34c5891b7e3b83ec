package condition

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
)

// match appends the hits of an event, ordered by id.
func (t *topic) match(event *Event, hits []Hit) ([]Hit, error) {
	err := t.search(event, nil, func(f *matchFrame) { hits = t.collect(f, hits) })
	return hits, err
}

// eachPlace visits the ids of the hits of an event, each once.
func (t *topic) eachPlace(event *Event, visit func(places []uint32)) error {
	return t.search(event, visit, func(f *matchFrame) { f.handOut(visit) })
}

// search evaluates all conditions, and calls found with the frame that holds the hits. If visit is
// given, it receives whole runs of ids before.
func (t *topic) search(event *Event, visit func([]uint32), found func(*matchFrame)) error {
	f := t.frames.Get().(*matchFrame)
	defer t.frames.Put(f)
	t.mu.RLock()
	defer t.mu.RUnlock()
	shape := t.compiled.Load().filterScope.Event
	f.begin(event, t.texts, t.paths.Values.Size)
	f.Previous.Begin(event.Previous, shape, &t.paths.Members)
	f.visit = visit
	t.checker.begin(f)
	defer f.end()
	if err := f.Data.Scan(event.Data, shape, t.paths.Members.Used, t.paths.Members.Size); err != nil {
		return err
	}

	for _, form := range t.filters.shapes {
		form.search(f)
	}
	t.filters.searchConjunctions(f)
	for _, tb := range t.rules {
		tb.search(f)
	}
	t.checker.check(t, f, event)
	found(f)
	return nil
}

// handOut visits the ids in f in runs of the size of its buffer.
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

// placeBuffer returns a buffer for ids.
func (f *matchFrame) placeBuffer() []uint32 {
	if f.buffer == nil {
		f.buffer = make([]uint32, 1024)
	}
	return f.buffer
}

// collect merges the subscriptions of the filters that matched with the single hits. A subscription
// has one condition, so none is in both.
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

// A hitWriter looks up the columns of hits page by page. The caller provides a slice with capacity for all hits.
type hitWriter struct {
	columns *subscriptionColumns
	page    *columnPage
	slots   *slotPage
	number  fanfare.RowID // of the page, with its partition
	hits    []Hit
}

func (w *hitWriter) write(p fanfare.RowID, rule int16) {
	if number := p >> pageBits; w.page == nil || number != w.number {
		at := w.columns.entry(p)
		w.page, w.slots, w.number = at.page.Load(), at.slots.Load(), number
	}
	at := p & pageMask
	// Setting each field is twice as fast as copying a whole Hit.
	last := len(w.hits)
	w.hits = w.hits[:last+1]
	hit := &w.hits[last]
	hit.Place, hit.Subscriber, hit.Channel, hit.Rule, hit.Slot = p, w.page.subscribers[at], w.page.channels[at], rule, 0
	if w.slots != nil {
		hit.Slot = w.slots[at]
	}
}

// ruleBits is the size of the rule in the key of a hit; the id is above.
const ruleBits = 16

func hitKey(p fanfare.RowID, rule int16) uint64 { return uint64(p)<<ruleBits | uint64(uint16(rule)) }

func placeAndRule(key uint64) (fanfare.RowID, int16) {
	return fanfare.RowID(key >> ruleBits), int16(key & (1<<ruleBits - 1))
}

// radixFrom is the number of hits from which a radix sort is faster.
const radixFrom = 512

// sortSingleHits orders the single hits by id.
func (f *matchFrame) sortSingleHits() []uint64 {
	if len(f.singleHits) < radixFrom {
		slices.Sort(f.singleHits)
		return f.singleHits
	}
	// Three passes of eleven bits cover the 32 bits of an id.
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

// A matchFrame holds the state of one match: the event and the hits found so far. Frames are
// reused; matches share nothing in them.
type matchFrame struct {
	expr.Frame

	epoch uint32     // differs between events
	memos [][]uint32 // results of residuals by text: epoch and truth; see residual

	textRound uint32   // current round of textMarks
	textMarks []uint32 // by text: the last round in which it was marked

	single        [1]uint32
	candidateRows []uint32 // candidates of a table with several access paths
	keyParts      []uint64 // the event's parts of the key of the current access path
	singleHits    []uint64 // hits of rules, and of filters with one subscription, packed by hitKey
	sortBuffer    []uint64

	scratch *conjunctionScratch // for conjunctions, made on demand

	visit          func([]uint32)    // receives whole runs of ids of rules, if the order does not matter
	filterHits     []*roaring.Bitmap // subscriptions of the filters that matched
	matchedFilters []uint32          // numbers of all filters that matched
	buffer         []uint32          // see placeBuffer
	visited        []uint32          // ids that visit received, for assertions
}

// begin prepares f for an event. The caller then sets its data.
func (f *matchFrame) begin(event *Event, t *expr.TextTable, values int) {
	f.Begin(event, t, values)
	f.singleHits, f.matchedFilters = f.singleHits[:0], f.matchedFilters[:0]
	if f.epoch++; f.epoch == maxEpoch {
		f.epoch = 1
		f.memos = nil
	}
}

// end releases the event.
func (f *matchFrame) end() {
	clear(f.filterHits)
	f.filterHits = f.filterHits[:0]
	f.visit = nil
	f.End()
}

// startTextMarks removes the marks of all texts.
func (f *matchFrame) startTextMarks() {
	if f.textRound++; f.textRound == 0 {
		clear(f.textMarks)
		f.textRound = 1
	}
	if n := f.Texts.Size(); len(f.textMarks) < n {
		f.textMarks = append(f.textMarks, make([]uint32, n+n/4-len(f.textMarks))...)
	}
}

// markText marks a text and reports whether it had no mark.
func (f *matchFrame) markText(number uint32) bool {
	if f.textMarks[number] == f.textRound {
		return false
	}
	f.textMarks[number] = f.textRound
	return true
}
