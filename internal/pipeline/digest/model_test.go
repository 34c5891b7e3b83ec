package digest_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/digest"
)

// A model computes the messages that must be sent.
type model struct {
	waits []wait
	sent  []string
	state map[uint16]time.Time // when each slot of state is due
}

// A wait is an event that matches a subscription, with the time of its digest.
type wait struct {
	of    *sub
	event *fanfare.AcceptedEvent
	slot  uint16
	due   time.Time
	left  bool // its subscription reports states now: the event is sent with the former cadence
}

// next returns when a slot is due after a time.
func (w *world) next(slot uint16, after time.Time) time.Time {
	s := w.slots[slot-1]
	return s.Cadence.Next(after, s.Zone)
}

// posted adds an event for each subscription that it matches.
func (m *model) posted(w *world, p *fanfare.AcceptedEvent) {
	for _, s := range w.subs {
		switch {
		case !s.active() || !s.wants(p):
		case s.slot == 0:
			m.sent = append(m.sent, fmt.Sprint("at once ", s.place.Local(), " ", p.Event.ID))
		case !w.slots[s.slot-1].Cadence.OfState():
			m.waits = append(m.waits, wait{of: s, event: p, slot: s.slot, due: w.next(s.slot, w.now)})
		}
	}
}

// changed moves the waiting events of a subscription to its new cadence.
func (m *model) changed(w *world, s *sub) {
	for i := range m.waits {
		if m.waits[i].of != s || m.waits[i].left {
			continue
		}
		switch {
		case s.slot == m.waits[i].slot:
		case s.slot == 0:
			m.waits[i].slot, m.waits[i].due = 0, w.now
		case !w.slots[s.slot-1].Cadence.OfState():
			m.waits[i].slot, m.waits[i].due = s.slot, w.next(s.slot, w.now)
		default:
			m.waits[i].left = true
		}
	}
	m.pass(w)
}

// pass sends what is due.
func (m *model) pass(w *world) {
	type run struct {
		slot uint16
		due  int64
	}
	due := map[run][]wait{}
	m.waits = slices.DeleteFunc(m.waits, func(x wait) bool {
		ripe := !x.due.After(w.now)
		if ripe {
			at := run{x.slot, x.due.Unix()}
			due[at] = append(due[at], x)
		}
		return ripe
	})
	for of, waits := range due {
		m.send(of.slot, time.Unix(of.due, 0).UTC(), waits)
	}
	for slot, at := range m.state {
		if at.After(w.now) {
			continue
		}
		var waits []wait
		for _, p := range w.last {
			for _, s := range w.subs {
				if s.slot == slot && s.active() && s.wants(p) {
					waits = append(waits, wait{of: s, event: p, slot: slot, due: at})
				}
			}
		}
		m.send(slot, at, waits)
		delete(m.state, slot)
	}
	m.look(w)
}

// look notes when the used slots of state are due.
func (m *model) look(w *world) {
	for _, s := range w.subs {
		if s.slot == 0 || !s.active() || !w.slots[s.slot-1].Cadence.OfState() {
			continue
		}
		if m.state == nil {
			m.state = map[uint16]time.Time{}
		}
		if m.state[s.slot].IsZero() {
			m.state[s.slot] = w.next(s.slot, w.now)
		}
	}
}

// send writes the messages of a run.
func (m *model) send(slot uint16, due time.Time, waits []wait) {
	type message struct {
		to       fanfare.RowID
		template uint32
	}
	of := map[message]map[fanfare.EventSeq][]wait{}
	for _, x := range waits {
		if !x.of.active() {
			continue
		}
		to := message{x.of.subscriber, topics[x.event.Topic].Template}
		if of[to] == nil {
			of[to] = map[fanfare.EventSeq][]wait{}
		}
		of[to][x.event.Seq] = append(of[to][x.event.Seq], x)
	}
	for to, events := range of {
		var told []string
		more, count, things := 0, map[string]int{}, map[string]bool{}
		for _, seq := range slices.Backward(slices.Sorted(maps.Keys(events))) {
			e := events[seq][0].event
			topic := topics[e.Topic]
			if topic.Key != nil && e.Event.Subject != "" {
				if things[e.Topic+e.Event.Subject] {
					continue
				}
				things[e.Topic+e.Event.Subject] = true
			}
			if count[e.Topic]++; count[e.Topic] > topic.Max {
				more++
				continue
			}
			slices.SortFunc(events[seq], func(a, b wait) int { return -cmp.Compare(a.of.place, b.of.place) })
			for _, x := range events[seq] {
				told = append(told, fmt.Sprint(e.Event.ID, "/", x.of.place.Local()))
			}
		}
		slices.Reverse(told)
		m.sent = append(m.sent, line(to.to, to.template, slot, due, told, more))
	}
}

// year lets a year pass.
func (w *world) year() {
	w.start()
	for i := range 60 {
		partition := i % 3 * 31
		w.subs = append(w.subs, &sub{
			place: fanfare.NewRowID(partition, uint32(i)), subscriber: fanfare.NewRowID(partition, uint32(i/6)),
			topic: []string{"story", "page", "quote"}[w.rand.IntN(3)], every: 1 + w.rand.IntN(3), zone: zones[i%len(zones)],
		})
		w.cadence(w.subs[i])
	}
	end := w.now.AddDate(1, 0, 0)
	for w.now.Before(end) {
		w.until(w.now.Add(time.Duration(w.rand.ExpFloat64() * float64(9*time.Hour))))
		s := w.subs[w.rand.IntN(len(w.subs))]
		switch n := w.rand.IntN(100); {
		case n < 70:
			w.event()
		case n < 82:
			if !s.ended {
				w.cadence(s)
				w.model.changed(w, s)
				w.step()
			}
		case n < 90:
			s.paused = !s.paused
		case n < 91:
			s.ended = true
		case n < 96: // the server restarts
			w.start()
		case n < 98: // or is stopped for a while
			w.now = w.now.Add(time.Duration(w.rand.ExpFloat64() * float64(30*time.Hour)))
			w.start()
		}
		if w.rand.IntN(20) == 0 {
			w.forget()
		}
		w.model.pass(w)
		w.step()
	}
}

// until lets time pass, and does what is due meanwhile.
func (w *world) until(to time.Time) {
	for w.now.Before(to) {
		next := to
		for _, x := range w.model.waits {
			if x.due.Before(next) {
				next = x.due
			}
		}
		for _, due := range w.model.state {
			if due.Before(next) {
				next = due
			}
		}
		w.now = next
		w.model.pass(w)
		w.step()
	}
}

// cadence changes the cadence of a subscription.
func (w *world) cadence(s *sub) {
	before := s.slot
	s.slot = w.slotOf(cadences[w.rand.IntN(len(cadences))], s.zone)
	if before != s.slot {
		s.was = slices.DeleteFunc(s.was, func(n uint16) bool { return n == s.slot })
		if before != 0 {
			s.was = append(s.was, before)
		}
	}
}

// event publishes an event.
func (w *world) event() {
	w.stream++
	topic := []string{"story", "page", "quote"}[w.rand.IntN(3)]
	p := &fanfare.AcceptedEvent{
		Service: "news", Topic: topic, Lane: fanfare.Normal, ReceivedAt: w.now, Seq: fanfare.NewEventSeq(w.stream, 0),
		Event: fanfare.Event{ID: fmt.Sprint(topic, "-", w.stream), Data: json.RawMessage(fmt.Sprint(w.rand.IntN(12))), Time: w.now},
	}
	if topic != "story" {
		p.Event.Subject = fmt.Sprint("thing ", w.rand.IntN(5))
	}
	w.model.posted(w, p)
	w.freeze(p)
	if topic == "quote" {
		w.last[p.Event.Subject] = p
	}
}

var _ digest.Slots = (*world)(nil)
