package plan

import "fanfare.dev/fanfare"

// Small is below how many members what an event has for one channel shares its
// batches with others. What is larger has its own, so that whoever delivers can
// give each broadcast its turn.
const Small = 100

// Cutter gathers the slices of manifests into batches: a large manifest gives
// many batches, many small ones share one. The slices of a manifest are the
// same however the batches fall.
type Cutter struct {
	parts map[partKey]*part
	order []*part // as they came
}

type cutKey struct {
	day     fanfare.Day
	channel uint16
	lane    fanfare.Lane
}

type partKey struct {
	cutKey
	event fanfare.EventSeq
}

// A part is what one event has for one channel and lane.
type part struct {
	key     partKey
	slices  []fanfare.RecipientRange
	members int
}

// Add cuts all members of a manifest into slices for their first attempt.
func (c *Cutter) Add(day fanfare.Day, lane fanfare.Lane, m *fanfare.Manifest) {
	from := uint32(0)
	for i := range m.Sections {
		end := from + uint32(m.Sections[i].Members.Len())
		for from < end {
			to := min(from+fanfare.MaxBatch, end)
			c.add(cutKey{day, m.Sections[i].Channel, lane}, fanfare.RecipientRange{Manifest: m.ID, From: from, To: to, Attempt: 1})
			from = to
		}
	}
}

// AddDue cuts work whose time has come.
func (c *Cutter) AddDue(day fanfare.Day, due *fanfare.Due) {
	c.add(cutKey{day, due.Channel, due.Lane}, due.Slice)
}

func (c *Cutter) add(to cutKey, slice fanfare.RecipientRange) {
	key := partKey{to, slice.Manifest.Event()}
	p := c.parts[key]
	if p == nil {
		if c.parts == nil {
			c.parts = map[partKey]*part{}
		}
		p = &part{key: key}
		c.parts[key], c.order = p, append(c.order, p)
	}
	p.slices = append(p.slices, slice)
	p.members += slice.Len()
}

// Batches returns all batches, those of small events first, and empties the
// cutter.
func (c *Cutter) Batches() []fanfare.Batch {
	shared, own := stack{}, stack{}
	for _, p := range c.order {
		if p.members < Small {
			shared.put(p)
			continue
		}
		own.put(p)
		own.close(p.key.cutKey)
	}
	c.parts, c.order = nil, nil
	return append(shared.batches, own.batches...)
}

// A stack is batches of which one of each key is still open.
type stack struct {
	batches []fanfare.Batch
	open    map[cutKey]int // where it is
}

func (s *stack) put(p *part) {
	key := p.key.cutKey
	for _, slice := range p.slices {
		at, open := s.open[key]
		if open && s.batches[at].Members()+slice.Len() > fanfare.MaxBatch {
			open = false
		}
		if !open {
			if s.open == nil {
				s.open = map[cutKey]int{}
			}
			at = len(s.batches)
			s.open[key] = at
			s.batches = append(s.batches, fanfare.Batch{Day: key.day, Channel: key.channel, Lane: key.lane})
		}
		s.batches[at].Slices = append(s.batches[at].Slices, slice)
	}
}

func (s *stack) close(key cutKey) { delete(s.open, key) }

// KeepLatestAttempts leaves each member of a batch in one of its slices, the one with its
// latest attempt. Work that was postponed twice is due twice, and a member that was tried in
// between is also due for its next attempt. All of it may become one batch, where a member that
// is named twice would wait for its own batch forever.
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
