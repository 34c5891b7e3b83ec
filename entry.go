package fanfare

import "time"

// An Entry is one line of the record: what one attempt led to. Entries are
// appended and never changed; the one with the highest attempt is the
// delivery's state.
type Entry struct {
	Delivery DeliveryRef
	Attempt  uint16 // from 1; a delivery settled without an attempt has one more than the number of its attempts
	State    State
	Code     int       // the protocol's own code, 0 without one
	Text     string    // the reply, or the reason
	Relay    string    // who answered, host:port
	Address  string    // as sent
	At       time.Time // when the outcome was known
	NextAt   time.Time // of a Deferred entry: when the next attempt is due

	// Returned says that the entry is not an attempt: a bounce or a receipt moves the
	// delivery from Accepted to State. The store ignores the entry if the delivery is in
	// another state, and otherwise sets the number of the attempt.
	Returned bool

	// Told says that the service receives an event about it (see the topics fanfare.*).
	// The fields below are kept only until that event is written and are not recorded.
	Told      bool
	Channel   uint16 // of the delivery; 0 if unknown
	Class     Class  // why it failed
	Complaint bool   // the reader reported it as junk
}

// A RecipientRange names members of one manifest that are to be delivered, the part of a
// batch that goes over the bus. It is a hint: who takes it reads first which of
// the members are settled.
type RecipientRange struct {
	Manifest  ManifestID `json:"m"`
	From      uint32     `json:"f,omitempty"` // first position
	To        uint32     `json:"t,omitempty"` // behind the last position
	Positions []uint32   `json:"p,omitempty"` // instead of From and To: single positions, ascending
	Attempt   uint16     `json:"a"`           // the number that this try would have, from 1
}

// Len is the number of members named.
func (s *RecipientRange) Len() int {
	if s.Positions != nil {
		return len(s.Positions)
	}
	return int(s.To - s.From)
}

// NewRecipientRange returns the slice of some ascending positions of a manifest. It names the first
// and the last position where there are no gaps between them.
func NewRecipientRange(m ManifestID, attempt uint16, positions []uint32) RecipientRange {
	first, last := positions[0], positions[len(positions)-1]
	if int(last-first) == len(positions)-1 {
		return RecipientRange{Manifest: m, From: first, To: last + 1, Attempt: attempt}
	}
	return RecipientRange{Manifest: m, Positions: positions, Attempt: attempt}
}

// Deliveries returns the deliveries that the slice names, in ascending order. day is the day
// of its batch.
func (s *RecipientRange) Deliveries(day Day) []DeliveryRef {
	refs := make([]DeliveryRef, 0, s.Len())
	for _, p := range s.Positions {
		refs = append(refs, DeliveryRef{Day: day, Manifest: s.Manifest, Position: p})
	}
	if s.Positions == nil {
		for p := s.From; p < s.To; p++ {
			refs = append(refs, DeliveryRef{Day: day, Manifest: s.Manifest, Position: p})
		}
	}
	return refs
}

// A Batch is the unit of hand-over between generation and delivery, and of the
// lease: slices of manifests of one day for one channel and lane.
type Batch struct {
	Day     Day              `json:"d"`
	Channel uint16           `json:"c"`
	Lane    Lane             `json:"l"`
	Slices  []RecipientRange `json:"s"`
}

// Members is the number of members named by all slices.
func (b *Batch) Members() int {
	n := 0
	for i := range b.Slices {
		n += b.Slices[i].Len()
	}
	return n
}

// MaxBatch is the most members a batch may name.
const MaxBatch = 1000

// A Frozen event is what generation commits in one transaction.
type MatchResult struct {
	Posted    *AcceptedEvent
	KeptAt    time.Time
	MatchedAt time.Time
	Matched   int64 // subscriptions
	Messages  int64 // members
	Manifests []Manifest
	Key       *KeyRef // whose state the event becomes; nil: nobody's
	Hold      string  // why it waits for approval; "": it does not

	Gathered []Gathered // who gets it later, with the run of a slot

	// Items visits, of a run, the events that its members name, ascending by number; nil:
	// there are none. They are read when they are kept, since they may be more than there
	// is memory, and again where the transaction has to begin anew.
	Items func(visit func(RunItem) error) error
}

// Progress is how far a broadcast has come, as it is kept.
type Progress struct {
	Counts    Counts
	First     time.Time
	Last      time.Time
	Completed time.Time // zero while deliveries are open
}

// A Due is work that waits for its time.
type Due struct {
	At      time.Time // whole seconds
	Channel uint16
	Lane    Lane
	Slice   RecipientRange

	Why         Wait   // of what was put off without an attempt, one message each
	Destination string // of what waits for that
}

// A Completion ends a broadcast: all of its deliveries are settled.
type Completion struct {
	Seq      EventSeq
	Progress Progress
}

// A Commit is what one group of attempts leads to, kept in one transaction.
type Commit struct {
	Entries     []Entry
	Corrections []int // the Returned entries of broadcasts that are completed: their counts change with them
	Dues        []Due
	Completions []Completion
}
