package cadence

import (
	"time"

	"fanfare.dev/fanfare"
)

// A Slot is a cadence of a service in a time zone. All subscriptions of a slot are due at the
// same times.
type Slot struct {
	Number  uint16 // unique across services and never reused; 0: immediate
	Service string
	Cadence Cadence
	Zone    *time.Location
}

// Next returns the first time after an instant at which the slot is due.
func (s *Slot) Next(after time.Time) time.Time { return s.Cadence.Next(after, s.Zone) }

// A Move is a subscription whose slot has changed. The events that wait for it in its former
// slots go to the new one.
type Move struct {
	Place, Subscriber fanfare.RowID
	Slot              uint16 // 0: immediate
	PastSlots         []uint16
}
