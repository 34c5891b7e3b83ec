package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store/control"
)

// kindSlot is the kind of a ConfigRecord that holds a cadence in a time zone.
const kindSlot = "slot"

// maxServiceSlots is the maximum number of cadences in time zones that a service may ever have. An
// installation has 65,535 numbers for all services, and a number is never reused.
const maxServiceSlots = 16_384

// A Slot is a cadence of a service in a time zone.
type Slot = cadence.Slot

// A slotKey identifies a slot.
type slotKey struct {
	service uint32
	cadence cadence.Cadence
	zone    string
}

// slotBody is the stored part of a slot in addition to its name, which is the text of the cadence.
type slotBody struct {
	Zone string `json:"zone"`
}

// slots holds the slots in force. One goroutine adds slots; any number may read them.
type slots struct {
	mu    sync.RWMutex
	all   []countedSlot // by number, from 1
	moves map[fanfare.RowID]Move
}

type countedSlot struct {
	Slot
	active int64 // subscriptions
}

func (s *slots) add(slot Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.all) < int(slot.Number) {
		s.all = append(s.all, countedSlot{})
	}
	s.all[slot.Number-1].Slot = slot
}

// at returns the slot with a number.
func (s *slots) at(number uint16) (Slot, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if i := int(number) - 1; i >= 0 && i < len(s.all) && s.all[i].Number != 0 {
		return s.all[i].Slot, true
	}
	return Slot{}, false
}

// countActive adds n to the active subscriptions in the slot of a subscription.
func (s *slots) countActive(of *control.SubscriptionRecord, n int64) {
	if of.Slot == 0 || !of.Active() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[of.Slot-1].active += n
}

// Slot returns the slot with a number.
func (r *Registry) Slot(number uint16) (Slot, bool) { return r.slots.at(number) }

// Slots lists the slots that have active subscriptions, by number.
func (r *Registry) Slots() []Slot {
	r.slots.mu.RLock()
	defer r.slots.mu.RUnlock()
	var list []Slot
	for i := range r.slots.all {
		if one := &r.slots.all[i]; one.active > 0 {
			list = append(list, one.Slot)
		}
	}
	return list
}

// cadenceOf returns the cadence of a subscription.
func (r *Registry) cadenceOf(s *control.SubscriptionRecord) cadence.Cadence {
	slot, _ := r.slots.at(s.Slot)
	return slot.Cadence
}

// loadSlot loads a stored slot.
func (r *Registry) loadSlot(s *catalog.Snapshot, c *control.ConfigRecord) error {
	var body slotBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	of, err := cadence.Parse(c.Name)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(body.Zone)
	if err != nil {
		r.opt.Logger.Warn("registry: unknown time zone; UTC is used instead", "zone", body.Zone, "cadence", c.Name)
		zone = time.UTC
	}
	service, known := s.ServiceNames[c.Service]
	if !known {
		return fmt.Errorf("unknown service number %d", c.Service)
	}
	slot := Slot{Number: uint16(c.Number), Service: service, Cadence: of, Zone: zone}
	r.slots.add(slot)
	r.writer.slots.add(slotKey{c.Service, of, body.Zone}, slot)
	return nil
}

// A newSlot is a slot that a group creates.
type newSlot struct {
	key  slotKey
	slot Slot
}

// plannedSlots holds the slots that the writer knows: those in force and those being committed.
type plannedSlots struct {
	numbers map[slotKey]uint16
	all     map[uint16]Slot
	counts  map[uint32]int // by service
	last    int            // highest number; the numbers of failed commits are not reused
}

func newPlannedSlots() plannedSlots {
	return plannedSlots{numbers: map[slotKey]uint16{}, all: map[uint16]Slot{}, counts: map[uint32]int{}}
}

func (p *plannedSlots) add(key slotKey, slot Slot) {
	p.numbers[key], p.all[slot.Number] = slot.Number, slot
	p.counts[key.service]++
	p.last = max(p.last, int(slot.Number))
}

func (p *plannedSlots) remove(key slotKey) {
	delete(p.all, p.numbers[key])
	delete(p.numbers, key)
	p.counts[key.service]--
}

// slot returns the number of the slot for a cadence in a time zone. An empty zone is unknown.
func (g *group) slot(service uint32, of cadence.Cadence, zone string) (uint16, error) {
	switch {
	case of.Immediate():
		return 0, nil
	case of.Zone() != "":
		zone = of.Zone()
	case !of.Local() || zone == "":
		zone = time.UTC.String()
	}
	key := slotKey{service, of, zone}
	planned := &g.w.slots
	if number := planned.numbers[key]; number != 0 {
		return number, nil
	}
	location, err := time.LoadLocation(zone)
	if err != nil { // the subscriber was stored with a zone that is no longer known
		return g.slot(service, of, "")
	}
	if had := planned.counts[service]; had >= maxServiceSlots || planned.last >= math.MaxUint16 {
		return 0, &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/cadence", Message: fmt.Sprintf("too many combinations of cadence and time zone are in use: %d in this service", had),
			Hint: "use the cadence and time zone of an existing subscription"}
	}
	body, err := json.Marshal(slotBody{zone})
	if err != nil {
		return 0, err
	}
	slot := Slot{Number: uint16(planned.last + 1), Service: g.w.r.Snapshot().ServiceNames[service], Cadence: of, Zone: location}
	planned.add(key, slot)
	g.changeCount++
	g.slots = append(g.slots, newSlot{key, slot})
	g.batch.Config = append(g.batch.Config, control.ConfigRecord{Kind: kindSlot, Number: uint32(slot.Number), Service: service, Name: of.String(), Body: body})
	return slot.Number, nil
}

// A Move is a subscription whose slot has changed.
type Move = cadence.Move

// maxPastSlots is the maximum number of past slots of a subscription whose waiting events have not
// moved yet. A change of time zone is allowed beyond it.
const maxPastSlots = 16

// setMove publishes the past slots of a committed row.
func (s *slots) setMove(of *control.SubscriptionRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.Ended || len(of.PastSlots) == 0 {
		delete(s.moves, of.Place)
		return
	}
	if s.moves == nil {
		s.moves = map[fanfare.RowID]Move{}
	}
	s.moves[of.Place] = Move{Place: of.Place, Subscriber: of.Subscriber, Slot: of.Slot, PastSlots: of.DecodePastSlots()}
}

// PendingMoves lists the subscriptions with waiting events in past slots, by row id.
func (r *Registry) PendingMoves() []Move {
	r.slots.mu.RLock()
	defer r.slots.mu.RUnlock()
	list := make([]Move, 0, len(r.slots.moves))
	for _, m := range r.slots.moves {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Move) int { return int(int64(a.Place) - int64(b.Place)) })
	return list
}

// ConfirmMoves records durably that the waiting events of subscriptions have moved. It skips a
// subscription whose slot has changed since; PendingMoves lists that one again.
func (r *Registry) ConfirmMoves(ctx context.Context, moves []Move) error {
	for some := range slices.Chunk(moves, maxJobChanges) {
		places := make([]fanfare.RowID, len(some))
		for i := range some {
			places[i] = some[i].Place
		}
		err := r.transact(ctx, func(g *group) ([]fanfare.RowID, error) {
			if err := g.readMissing(places); err != nil {
				return nil, err
			}
			for i := range some {
				if err := g.confirmMove(&some[i]); err != nil {
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

func (g *group) confirmMove(m *Move) error {
	s, err := g.subscription(m.Place)
	if err != nil {
		return g.w.r.readError(err)
	}
	if s == nil || s.Ended || s.Slot != m.Slot || len(s.PastSlots) == 0 {
		return nil
	}
	if s, err = g.change(m.Place); err != nil {
		return g.w.r.readError(err)
	}
	s.SetPastSlots(slices.DeleteFunc(s.DecodePastSlots(), func(n uint16) bool { return slices.Contains(m.PastSlots, n) }))
	return nil
}

// readMissing reads all subscriptions that the group has not read yet, in one step.
func (g *group) readMissing(places []fanfare.RowID) error {
	unknown := slices.DeleteFunc(slices.Clone(places), func(p fanfare.RowID) bool { return g.hasSubscription(p) || g.isNew(p) })
	if err := g.readSubscriptions(context.Background(), control.SortPlaces(unknown)); err != nil {
		return g.w.r.readError(err)
	}
	if g.aborted {
		return errAborted
	}
	return nil
}

// updateTimeZone moves the subscriptions of a subscriber that follow local time to its current
// time zone.
func (g *group) updateTimeZone(place fanfare.RowID) error {
	head, err := g.subscriber(place)
	if err != nil {
		return g.w.r.readError(err)
	}
	if g.w.slots.counts[head.Service] == 0 {
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
				return g.w.r.readError(err)
			}
			slot, err := g.slot(service, g.w.slots.all[s.Slot].Cadence, zone)
			if err != nil { // no number is available: the subscription keeps its slot
				continue
			}
			if err := g.setSlot(at, slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// updateTimeZoneOfRow is updateTimeZone for the subscriber of a row.
func (g *group) updateTimeZoneOfRow(row fanfare.RowID) error {
	s, err := g.subscriber(row)
	if err != nil {
		return g.w.r.readError(err)
	}
	return g.updateTimeZone(s.Head())
}

// slotFor returns the slot of a cadence for the subscriber of a row.
func (g *group) slotFor(row fanfare.RowID, of cadence.Cadence) (uint16, error) {
	if of.Immediate() {
		return 0, nil
	}
	s, err := g.subscriber(row)
	if err != nil {
		return 0, g.w.r.readError(err)
	}
	if s.Head() != s.Place {
		if s, err = g.subscriber(s.Head()); err != nil {
			return 0, g.w.r.readError(err)
		}
	}
	return g.slot(s.Service, of, s.TimeZone)
}

// setSlot changes the slot of a subscription. No event can wait for a new subscription.
func (g *group) setSlot(place fanfare.RowID, slot uint16) error {
	s, err := g.subscription(place)
	if err != nil {
		return g.w.r.readError(err)
	}
	switch {
	case s.Slot == slot:
		return nil
	case g.isNew(place):
		s.Slot = slot
		return nil
	}
	if s, err = g.change(place); err != nil {
		return g.w.r.readError(err)
	}
	s.MoveToSlot(slot)
	return nil
}

// checkPastSlots rejects a further change of the slot if too many past slots remain.
func checkPastSlots(s *control.SubscriptionRecord) error {
	if len(s.PastSlots) == 0 || len(s.DecodePastSlots()) < maxPastSlots {
		return nil
	}
	return &fanfare.Error{Code: fanfare.Unavailable, Pointer: "/cadence",
		Message: fmt.Sprintf("the cadence has changed %d times, and the waiting events have not been moved yet", maxPastSlots), Hint: "try again in a minute"}
}
