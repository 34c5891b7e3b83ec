package registry

import (
	"context"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store/control"
)

// A Move is a subscription whose slot has changed.
type Move = cadence.Move

// maxWas is how many slots a subscription may be put out of before what waits in them
// has been carried over. Who moves to another time zone is not refused.
const maxWas = 16

// noteMove makes what a committed row says of moves seen.
func (s *slots) noteMove(of *control.SubscriptionRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.Ended || len(of.PastSlots) == 0 {
		delete(s.moves, of.Place)
		return
	}
	if s.moves == nil {
		s.moves = map[fanfare.RowID]Move{}
	}
	s.moves[of.Place] = Move{Place: of.Place, Subscriber: of.Subscriber, Slot: of.Slot, Was: of.DecodePastSlots()}
}

// Moves lists the subscriptions that have got another slot and whose waiting items have
// not been carried over, by place.
func (r *Registry) Moves() []Move {
	r.slots.mu.RLock()
	defer r.slots.mu.RUnlock()
	list := make([]Move, 0, len(r.slots.moves))
	for _, m := range r.slots.moves {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Move) int { return int(int64(a.Place) - int64(b.Place)) })
	return list
}

// Carried notes that what waited has been carried over; that is durable when it returns.
// A subscription that has left its slot meanwhile is passed by: it comes with Moves again.
func (r *Registry) Carried(ctx context.Context, moves []Move) error {
	for some := range slices.Chunk(moves, maxJob) {
		places := make([]fanfare.RowID, len(some))
		for i := range some {
			places[i] = some[i].Place
		}
		err := r.change(ctx, func(g *group) ([]fanfare.RowID, error) {
			if err := g.readUnknown(places); err != nil {
				return nil, err
			}
			for i := range some {
				if err := g.carried(&some[i]); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *group) carried(m *Move) error {
	s, err := g.subscription(m.Place)
	if err != nil {
		return g.w.r.unreadable(err)
	}
	if s == nil || s.Ended || s.Slot != m.Slot || len(s.PastSlots) == 0 {
		return nil
	}
	if s, err = g.change(m.Place); err != nil {
		return g.w.r.unreadable(err)
	}
	s.SetPastSlots(slices.DeleteFunc(s.DecodePastSlots(), func(n uint16) bool { return slices.Contains(m.Was, n) }))
	return nil
}

// readUnknown reads the subscriptions that the group has not read, in one go.
func (g *group) readUnknown(places []fanfare.RowID) error {
	unknown := slices.DeleteFunc(slices.Clone(places), func(p fanfare.RowID) bool { return g.knows(p) || g.isNew(p) })
	if err := g.readSubscriptions(context.Background(), control.SortPlaces(unknown)); err != nil {
		return g.w.r.unreadable(err)
	}
	if g.aborted {
		return errAborted
	}
	return nil
}

// rezone moves what a subscriber has on local clocks to the time zone that it has now.
func (g *group) rezone(place fanfare.RowID) error {
	head, err := g.subscriber(place)
	if err != nil {
		return g.w.r.unreadable(err)
	}
	if g.w.slots.had[head.Service] == 0 {
		return nil
	}
	service, zone := head.Service, head.TimeZone
	for _, p := range head.Rows() {
		waiting, err := g.subscriptionsOf(p.Place, func(s *control.SubscriptionRecord) bool { return !s.Ended && s.Slot != 0 })
		if err != nil {
			return err
		}
		for _, at := range waiting {
			s, err := g.subscription(at)
			if err != nil {
				return g.w.r.unreadable(err)
			}
			slot, err := g.slot(service, g.w.slots.all[s.Slot].Cadence, zone)
			if err != nil { // no number is left: it stays on the clock that it is on
				continue
			}
			if err := g.setSlot(at, slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// rezoneOf is rezone for the subscriber of a row.
func (g *group) rezoneOf(row fanfare.RowID) error {
	s, err := g.subscriber(row)
	if err != nil {
		return g.w.r.unreadable(err)
	}
	return g.rezone(s.Head())
}

// slotFor is the slot of a cadence for the subscriber of a row.
func (g *group) slotFor(row fanfare.RowID, of cadence.Cadence) (uint16, error) {
	if of.Immediate() {
		return 0, nil
	}
	s, err := g.subscriber(row)
	if err != nil {
		return 0, g.w.r.unreadable(err)
	}
	if s.Head() != s.Place {
		if s, err = g.subscriber(s.Head()); err != nil {
			return 0, g.w.r.unreadable(err)
		}
	}
	return g.slot(s.Service, of, s.TimeZone)
}

// setSlot changes the slot of a subscription. Nothing can wait in that of a new one.
func (g *group) setSlot(place fanfare.RowID, slot uint16) error {
	s, err := g.subscription(place)
	if err != nil {
		return g.w.r.unreadable(err)
	}
	switch {
	case s.Slot == slot:
		return nil
	case g.isNew(place):
		s.Slot = slot
		return nil
	}
	if s, err = g.change(place); err != nil {
		return g.w.r.unreadable(err)
	}
	s.MoveToSlot(slot)
	return nil
}

// mayLeaveSlot refuses to put a subscription out of its slot once more.
func mayLeaveSlot(s *control.SubscriptionRecord) error {
	if len(s.PastSlots) == 0 || len(s.DecodePastSlots()) < maxWas {
		return nil
	}
	return &fanfare.Error{Code: fanfare.Unavailable, Pointer: "/cadence",
		Message: fmt.Sprintf("its cadence has changed %d times, and what waits has not been carried over yet", maxWas), Hint: "try again in a minute"}
}
