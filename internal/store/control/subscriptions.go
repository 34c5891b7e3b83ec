package control

import (
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare"
)

// PreviousSlots are the slots that the subscription had before.
func (s *SubscriptionRecord) PreviousSlots() (list []uint16) {
	if len(s.Was) > 0 {
		_ = json.Unmarshal(s.Was, &list) // we wrote it
	}
	return list
}

func (s *SubscriptionRecord) SetPreviousSlots(list []uint16) {
	s.Was = nil
	if len(list) > 0 {
		s.Was, _ = json.Marshal(list) // numbers
	}
}

// MoveToSlot gives the subscription a slot, and notes the one that it leaves.
func (s *SubscriptionRecord) MoveToSlot(slot uint16) {
	was := slices.DeleteFunc(s.PreviousSlots(), func(n uint16) bool { return n == slot || n == s.Slot })
	if s.Slot != 0 {
		was = append(was, s.Slot)
	}
	s.Slot = slot
	s.SetPreviousSlots(was)
}

// SetPaused begins or ends a pause. Its sequence is that of the transaction.
func (s *SubscriptionRecord) SetPaused(paused bool) {
	if paused && !s.Paused {
		s.PausedAt, s.PausedSeq, s.ResumedSeq = 0, 0, 0
	}
	s.Paused = paused
}

// A SubscriptionRecord is a subscription as kept.
type SubscriptionRecord struct {
	Place      fanfare.Place
	Subscriber fanfare.Place
	Topic      uint32
	Channel    uint16
	ID         string // chosen by the client, or ""
	Filter     uint32 // 0: none
	Rule       uint32 // 0: none
	Params     []byte // canonical JSON object, or empty
	Data       []byte // JSON object, or empty
	Ended      bool
	CreatedAt  int64 // Unix nanoseconds
	CreatedSeq uint64
	EndedAt    int64
	EndedSeq   uint64
	Reason     string

	// The last pause. One that is paused has no ResumedSeq.
	Paused     bool
	PausedAt   int64
	PausedSeq  uint64
	ResumedSeq uint64

	Slot uint16 // number of a cadence in a time zone; 0: at once
	Was  []byte // JSON: the slots before, of which what waits has not been carried over; an insert does not write it
}

// Active reports whether events are matched against it.
func (s *SubscriptionRecord) Active() bool { return !s.Ended && !s.Paused }
