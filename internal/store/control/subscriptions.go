package control

import (
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare"
)

// A SubscriptionRecord is a subscription as it is stored.
type SubscriptionRecord struct {
	Place      fanfare.RowID
	Subscriber fanfare.RowID
	Topic      uint32
	Channel    uint16
	ID         string // chosen by the client, or ""
	Filter     uint32 // 0: none
	Rule       uint32 // 0: none
	Params     []byte // canonical JSON object, or empty
	Data       []byte // JSON object, or empty

	// For the subscriber, or "".
	Title, Description string

	Ended      bool
	CreatedAt  int64 // Unix nanoseconds
	CreatedSeq uint64
	EndedAt    int64
	EndedSeq   uint64
	Reason     string

	// The last pause. A paused subscription has no ResumedSeq.
	Paused     bool
	PausedAt   int64
	PausedSeq  uint64
	ResumedSeq uint64

	Slot      uint16 // number of a cadence in a time zone; 0: immediate
	PastSlots []byte // JSON of the previous slots whose waiting events have not moved to Slot; an insert does not write it
}

// Active reports whether the subscription can match events.
func (s *SubscriptionRecord) Active() bool { return !s.Ended && !s.Paused }

// DecodePastSlots returns the previous slots that still have waiting events.
func (s *SubscriptionRecord) DecodePastSlots() (list []uint16) {
	if len(s.PastSlots) > 0 {
		_ = json.Unmarshal(s.PastSlots, &list) // SetPastSlots wrote it
	}
	return list
}

// SetPastSlots sets the previous slots that still have waiting events.
func (s *SubscriptionRecord) SetPastSlots(list []uint16) {
	s.PastSlots = nil
	if len(list) > 0 {
		s.PastSlots, _ = json.Marshal(list) // numbers: cannot fail
	}
}

// MoveToSlot changes the slot and adds the old one to the past slots.
func (s *SubscriptionRecord) MoveToSlot(slot uint16) {
	past := slices.DeleteFunc(s.DecodePastSlots(), func(n uint16) bool { return n == slot || n == s.Slot })
	if s.Slot != 0 {
		past = append(past, s.Slot)
	}
	s.Slot = slot
	s.SetPastSlots(past)
}

// SetPaused begins or ends a pause. The transaction sets its sequence.
func (s *SubscriptionRecord) SetPaused(paused bool) {
	if paused && !s.Paused {
		s.PausedAt, s.PausedSeq, s.ResumedSeq = 0, 0, 0
	}
	s.Paused = paused
}
