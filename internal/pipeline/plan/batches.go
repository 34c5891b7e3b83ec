package plan

import "fanfare.dev/fanfare"

// MinOwnBatch is the number of recipients of an event in one channel from which the event has
// batches of its own, so that delivery can take turns between broadcasts. Smaller events share
// batches.
const MinOwnBatch = 100

// Batcher cuts manifests into ranges of recipients and puts these into batches: a large manifest
// has many batches, and many small manifests share one. The ranges of a manifest do not depend
// on the batches.
type Batcher struct {
	events map[eventKey]*eventRanges
	order  []*eventRanges // in the order of their first ranges
}

type batchKey struct {
	day     fanfare.Day
	channel uint16
	lane    fanfare.Lane
}

type eventKey struct {
	batchKey
	event fanfare.EventSeq
}

// eventRanges has the ranges of one event for one channel and lane.
type eventRanges struct {
	key     eventKey
	slices  []fanfare.RecipientRange
	members int
}

// Add cuts all members of a manifest into ranges for their first attempt.
func (b *Batcher) Add(day fanfare.Day, lane fanfare.Lane, m *fanfare.Manifest) {
	from := uint32(0)
	for i := range m.Sections {
		end := from + uint32(m.Sections[i].Members.Len())
		for from < end {
			to := min(from+fanfare.MaxBatch, end)
			b.add(batchKey{day, m.Sections[i].Channel, lane}, fanfare.RecipientRange{Manifest: m.ID, From: from, To: to, Attempt: 1})
			from = to
		}
	}
}

// AddDue adds work that is due.
func (b *Batcher) AddDue(day fanfare.Day, due *fanfare.Due) {
	b.add(batchKey{day, due.Channel, due.Lane}, due.Slice)
}

func (b *Batcher) add(to batchKey, slice fanfare.RecipientRange) {
	key := eventKey{to, slice.Manifest.Event()}
	p := b.events[key]
	if p == nil {
		if b.events == nil {
			b.events = map[eventKey]*eventRanges{}
		}
		p = &eventRanges{key: key}
		b.events[key], b.order = p, append(b.order, p)
	}
	p.slices = append(p.slices, slice)
	p.members += slice.Len()
}

// Batches returns all batches, those of small events first, and empties the Batcher.
func (b *Batcher) Batches() []fanfare.Batch {
	shared, own := batchList{}, batchList{}
	for _, p := range b.order {
		if p.members < MinOwnBatch {
			shared.put(p)
			continue
		}
		own.put(p)
		own.close(p.key.batchKey)
	}
	b.events, b.order = nil, nil
	return append(shared.batches, own.batches...)
}

// A batchList contains batches, of which one for each key is still open.
type batchList struct {
	batches []fanfare.Batch
	open    map[batchKey]int // its index
}

func (l *batchList) put(p *eventRanges) {
	key := p.key.batchKey
	for _, slice := range p.slices {
		at, open := l.open[key]
		if open && l.batches[at].Members()+slice.Len() > fanfare.MaxBatch {
			open = false
		}
		if !open {
			if l.open == nil {
				l.open = map[batchKey]int{}
			}
			at = len(l.batches)
			l.open[key] = at
			l.batches = append(l.batches, fanfare.Batch{Day: key.day, Channel: key.channel, Lane: key.lane})
		}
		l.batches[at].Slices = append(l.batches[at].Slices, slice)
	}
}

func (l *batchList) close(key batchKey) { delete(l.open, key) }

// KeepLatestAttempts keeps each member of a batch only in the slice with its latest attempt.
// Work that was postponed twice is due twice, and a member that was tried in between is also
// due for its next attempt. All of this may become one batch, in which a member that occurs
// twice would wait for its own batch forever.
func KeepLatestAttempts(batch *fanfare.Batch) {
	if len(batch.Slices) < 2 {
		return
	}
	latest, repeated := make(map[fanfare.DeliveryRef]int, batch.Members()), false
	for i := range batch.Slices {
		for _, ref := range batch.Slices[i].Deliveries(batch.Day) {
			before, known := latest[ref]
			repeated = repeated || known
			if !known || batch.Slices[before].Attempt < batch.Slices[i].Attempt {
				latest[ref] = i
			}
		}
	}
	if !repeated {
		return
	}
	var kept []fanfare.RecipientRange
	for i := range batch.Slices {
		slice := &batch.Slices[i]
		var positions []uint32
		for _, ref := range slice.Deliveries(batch.Day) {
			if latest[ref] == i {
				positions = append(positions, ref.Position)
			}
		}
		if len(positions) > 0 {
			kept = append(kept, fanfare.NewRecipientRange(slice.Manifest, slice.Attempt, positions))
		}
	}
	batch.Slices = kept
}
