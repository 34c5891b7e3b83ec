package fanfare

import "time"

// An Entry records the result of one attempt. Entries are appended and never changed; the entry
// with the highest attempt has the state of the delivery.
type Entry struct {
	Delivery DeliveryRef
	Attempt  uint16 // from 1; if a delivery is settled without an attempt, its number of attempts plus one
	State    State
	Code     int       // code of the protocol; 0 if there is none
	Text     string    // reply of the next hop, or the reason
	Relay    string    // host:port that answered
	Address  string    // address used in the attempt
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
	Class     Class  // why the attempt failed
	Complaint bool   // the recipient reported the message as junk
}

// A RecipientRange names members of one manifest to deliver. It is a hint: the stage that delivers
// it first reads which members are settled.
type RecipientRange struct {
	Manifest  ManifestID `json:"m"`
	From      uint32     `json:"f,omitempty"` // first position
	To        uint32     `json:"t,omitempty"` // after the last position
	Positions []uint32   `json:"p,omitempty"` // replaces From and To: single positions, ascending
	Attempt   uint16     `json:"a"`           // the number of this attempt, from 1
}

// Len returns the number of members.
func (s *RecipientRange) Len() int {
	if s.Positions != nil {
		return len(s.Positions)
	}
	return int(s.To - s.From)
}

// NewRecipientRange returns the range of some ascending positions of a manifest. Positions without
// gaps become From and To.
func NewRecipientRange(m ManifestID, attempt uint16, positions []uint32) RecipientRange {
	first, last := positions[0], positions[len(positions)-1]
	if int(last-first) == len(positions)-1 {
		return RecipientRange{Manifest: m, From: first, To: last + 1, Attempt: attempt}
	}
	return RecipientRange{Manifest: m, Positions: positions, Attempt: attempt}
}

// Deliveries returns the deliveries of the range, in ascending order. day is the day of its batch.
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

// A Batch is the unit of work between matching and delivery, and of the lease: ranges of recipients of
// one day, channel and lane.
type Batch struct {
	Day     Day              `json:"d"`
	Channel uint16           `json:"c"`
	Lane    Lane             `json:"l"`
	Slices  []RecipientRange `json:"s"`
}

// Members returns the number of members of all ranges.
func (b *Batch) Members() int {
	n := 0
	for i := range b.Slices {
		n += b.Slices[i].Len()
	}
	return n
}

// MaxBatch is the maximum number of members in a batch.
const MaxBatch = 1000

// A MatchResult is the result of matching one event. It is stored in one transaction and never
// changed.
type MatchResult struct {
	Posted    *AcceptedEvent
	KeptAt    time.Time
	MatchedAt time.Time
	Matched   int64 // number of subscriptions
	Messages  int64 // number of members
	Manifests []Manifest
	Key       *KeyRef // the key whose state the event becomes; nil if there is none
	Hold      string  // why the broadcast waits for approval; "" if it does not wait

	Gathered []Gathered // recipients that wait for a digest

	// Items visits the events that the members of a run refer to, ascending by number; nil if there
	// are none. The transaction reads them one by one, because they may not fit in memory, and reads
	// them again if it is repeated.
	Items func(visit func(RunItem) error) error
}

// Progress is the stored progress of a broadcast.
type Progress struct {
	Counts    Counts
	Reasons   Reasons
	First     time.Time
	Last      time.Time
	Completed time.Time // zero while deliveries are open
}

// A Due is work postponed to a time.
type Due struct {
	At      time.Time // whole seconds
	Channel uint16
	Lane    Lane
	Slice   RecipientRange

	Why         Wait   // for postponed first attempts, one message each
	Destination string // the destination that the message waits for
}

// A Completion says that all deliveries of a broadcast are settled.
type Completion struct {
	Seq      EventSeq
	Progress Progress
}

// A Commit is the result of several attempts, stored in one transaction.
type Commit struct {
	Entries     []Entry
	Corrections []int // indexes of the Returned entries that change the counts of completed broadcasts
	Dues        []Due
	Completions []Completion
}
