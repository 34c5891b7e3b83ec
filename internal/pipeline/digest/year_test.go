package digest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/digest"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/schedule/cadence"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// retention is the number of days for which the world keeps events for which nothing waits.
const retention = 30 * 24 * time.Hour

var zones = []string{
	"UTC", "Europe/London", "Europe/Berlin", "America/New_York", "America/Los_Angeles", "America/St_Johns", "America/Sao_Paulo",
	"Asia/Tokyo", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tehran", "Asia/Gaza", "Australia/Sydney", "Australia/Lord_Howe",
	"Pacific/Auckland", "Pacific/Chatham", "Pacific/Apia", "Africa/Cairo", "Africa/Casablanca", "America/Havana",
}

var cadences = []string{
	"immediate", "immediate", "window 60s", "window 1h", "window 24h", "daily 08:00", "daily 02:30", "daily 00:00",
	"weekly saturday 08:00", "cron 0 8,18 * * 1-5", "cron 30 1 1 * *", "daily 07:00 of state", "weekly monday 09:00 of state",
}

// topics says how events are reported: the first two topics share a template.
var topics = map[string]digest.Topic{
	"story": {Template: 7, Max: 3},
	"page":  {Template: 7, Max: 2, Key: keyOf},
	"quote": {Template: 8, Max: 50, Key: keyOf},
}

func keyOf(e *fanfare.Event) (string, bool) { return e.Subject, e.Subject != "" }

// A world is a server with a clock that the test sets. Matching is a loop over all subscriptions, and
// the bus is a list. It writes each message as a line.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	now    time.Time
	store  *deliveries.Store
	server *digest.Scheduler
	bus    []*fanfare.AcceptedEvent
	stream uint64

	slots []digest.Slot // by number, from 1
	subs  []*sub
	last  map[string]*fanfare.AcceptedEvent // by topic and key

	sent  []string
	model model
}

// A sub is a subscription. It matches the events of a topic whose number is a multiple of its own.
type sub struct {
	place, subscriber fanfare.RowID
	topic             string
	every             int
	zone              string
	slot              uint16
	was               []uint16
	paused, ended     bool
}

func (s *sub) active() bool { return !s.paused && !s.ended }

func (s *sub) wants(p *fanfare.AcceptedEvent) bool {
	return p.Topic == s.topic && numberOf(p)%s.every == 0
}

func numberOf(p *fanfare.AcceptedEvent) (n int) {
	_ = json.Unmarshal(p.Event.Data, &n)
	return n
}

func (w *world) Now() time.Time { return w.now }

func (w *world) Slot(number uint16) (digest.Slot, bool) {
	if number == 0 || int(number) > len(w.slots) {
		return digest.Slot{}, false
	}
	return w.slots[number-1], true
}

func (w *world) Slots() (list []digest.Slot) {
	for _, slot := range w.slots {
		if slices.ContainsFunc(w.subs, func(s *sub) bool { return s.slot == slot.Number && s.active() }) {
			list = append(list, slot)
		}
	}
	return list
}

func (w *world) PendingMoves() (moves []digest.Move) {
	for _, s := range w.subs {
		if len(s.was) > 0 && !s.ended {
			moves = append(moves, digest.Move{Place: s.place, Subscriber: s.subscriber, Slot: s.slot, PastSlots: s.was})
		}
	}
	return moves
}

var errFault = errors.New("a fault of the test")

// faulty fails at random, before or after an operation.
func (w *world) faulty(do func()) error {
	switch w.rand.IntN(12) {
	case 0:
		return errFault
	case 1:
		do()
		return errFault
	}
	do()
	return nil
}

func (w *world) ConfirmMoves(_ context.Context, moves []digest.Move) error {
	return w.faulty(func() {
		for _, m := range moves {
			for _, s := range w.subs {
				if s.place == m.Place && s.slot == m.Slot {
					s.was = nil
				}
			}
		}
	})
}

func (w *world) publish(_ context.Context, p *fanfare.AcceptedEvent) error {
	return w.faulty(func() {
		run := *p
		w.stream++
		run.Seq = fanfare.NewEventSeq(w.stream, 0)
		w.bus = append(w.bus, &run)
	})
}

// start starts a server on the store.
func (w *world) start() {
	w.server = digest.New(digest.Options{
		Store: w.store, Slots: w, Clock: w, Live: func(p fanfare.RowID) bool { return w.at(p).active() },
		Topic:   func(_, topic string) (digest.Topic, bool) { t, ok := topics[topic]; return t, ok },
		State:   w.states,
		Publish: w.publish, Logger: slog.New(slog.DiscardHandler),
	})
	days, err := w.store.Days(w.t.Context())
	if err == nil {
		err = w.server.Load(w.t.Context(), days, nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) at(p fanfare.RowID) *sub { return w.subs[p.Local()] }

func (w *world) states(_ context.Context, of digest.Slot, visit func(*fanfare.AcceptedEvent, []fanfare.Hit) error) error {
	for _, posted := range w.last {
		hits := slices.DeleteFunc(w.hits(posted), func(h fanfare.Hit) bool { return h.Slot != of.Number })
		if err := visit(posted, hits); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) hits(p *fanfare.AcceptedEvent) (hits []fanfare.Hit) {
	for _, s := range w.subs {
		if s.active() && s.wants(p) {
			hits = append(hits, fanfare.Hit{Place: s.place, Subscriber: s.subscriber, Channel: 1, Rule: -1, Slot: s.slot})
		}
	}
	return hits
}

// step repeats Step until it succeeds, and matches the published runs. It restarts the server at
// random.
func (w *world) step() (next time.Time) {
	for {
		next, err := w.server.Step(w.t.Context())
		if err != nil && !errors.Is(err, errFault) {
			w.t.Fatal(err)
		}
		if w.rand.IntN(10) == 0 {
			w.start()
			err = errFault
		}
		if len(w.bus) == 0 && err == nil {
			return next
		}
		if w.rand.IntN(4) == 0 && len(w.bus) > 0 {
			w.bus = append(w.bus, w.bus[0]) // it comes again
		}
		for len(w.bus) > 0 {
			run := w.bus[0]
			w.bus = w.bus[1:]
			w.freeze(run)
		}
	}
}

// freeze matches an event, or merges a run, and commits the result.
func (w *world) freeze(posted *fanfare.AcceptedEvent) {
	w.t.Helper()
	round := w.server.Begin()
	defer round.End()
	f := &fanfare.MatchResult{Posted: posted, KeptAt: w.now, MatchedAt: w.now}
	if posted.Run != nil {
		var err error
		if f, err = round.Merge(w.t.Context(), posted); err != nil {
			w.t.Fatal(err)
		}
	} else {
		var now []fanfare.Hit
		now, f.Gathered = plan.SplitDigests(posted.Seq, w.hits(posted), round.Due)
		for _, hit := range now {
			w.sent = append(w.sent, fmt.Sprint("at once ", hit.Place.Local(), " ", posted.Event.ID))
		}
	}
	for again := range 1 + w.rand.IntN(2) {
		fresh, err := w.store.Freeze(w.t.Context(), []*fanfare.MatchResult{f}, w.now)
		if err != nil {
			w.t.Fatal(err)
		}
		if again == 0 && posted.Run != nil && fresh[0] {
			w.tell(posted)
		}
		if err := w.server.Committed(w.t.Context(), []*fanfare.MatchResult{f}, fresh); err != nil {
			w.t.Fatal(err)
		}
	}
}

// tell writes the messages of a run, as the store has them.
func (w *world) tell(run *fanfare.AcceptedEvent) {
	manifests, err := w.store.Manifests(w.t.Context(), run.Ref())
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range manifests {
		for _, section := range manifests[i].Sections {
			for m := range section.Members.All() {
				var numbers []uint32
				for _, item := range m.Items {
					numbers = append(numbers, item.Number)
				}
				events := map[uint32]string{}
				err := w.store.Items(w.t.Context(), run.Ref(), slices.Compact(slices.Clone(numbers)), func(item fanfare.RunItem) error {
					events[item.Number] = item.Posted.Event.ID
					return nil
				})
				if err != nil {
					w.t.Fatal(err)
				}
				var told []string
				for _, item := range m.Items {
					told = append(told, fmt.Sprint(events[item.Number], "/", item.Subscription.Local()))
				}
				w.sent = append(w.sent, line(m.Subscriber, section.Template, run.Run.Slot, run.Run.Due, told, int(m.More)))
			}
		}
	}
}

func line(to fanfare.RowID, template uint32, slot uint16, due time.Time, told []string, more int) string {
	when := due.Format(time.RFC3339)
	if slot == 0 {
		when = "now"
	}
	return fmt.Sprintf("%d of %d, slot %d at %s: %s and %d more", to.Local(), template, slot, when, strings.Join(told, " "), more)
}

// slotOf returns the number of a slot.
func (w *world) slotOf(text, zone string) uint16 {
	c, err := cadence.Parse(text)
	if err != nil {
		w.t.Fatal(err)
	}
	if c.Immediate() {
		return 0
	}
	if !c.Local() {
		zone = "UTC"
	}
	at, err := time.LoadLocation(zone)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range w.slots {
		if s.Cadence == c && s.Zone.String() == zone {
			return s.Number
		}
	}
	w.slots = append(w.slots, digest.Slot{Number: uint16(len(w.slots) + 1), Service: "news", Cadence: c, Zone: at})
	return uint16(len(w.slots))
}

// forget removes old days for which nothing waits.
func (w *world) forget() {
	days, err := w.store.Days(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, day := range days {
		waiting, err := w.store.Pending(w.t.Context(), day)
		if err == nil && len(waiting) == 0 && day.Time().Before(w.now.Add(-retention)) {
			err = w.store.Remove(w.t.Context(), day)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestYearOfDigestsMatchesTheModel compares a year of random events, cadences, pauses, ends, faults
// and restarts with a model that shares no code: it gives each matching event a time, and sends
// what is due at each time.
func TestYearOfDigestsMatchesTheModel(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			db, err := sqlite.Open(t.Context(), t.TempDir(), store.Relaxed)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			w := &world{
				t: t, rand: rand.New(rand.NewPCG(seed, 7)), store: deliveries.New(db), last: map[string]*fanfare.AcceptedEvent{},
				now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), stream: 1,
			}
			w.year()
			slices.Sort(w.sent)
			slices.Sort(w.model.sent)
			digests := 0
			for _, s := range w.sent {
				if !strings.HasPrefix(s, "at once") {
					digests++
				}
			}
			t.Logf("%d messages, %d of them digests, %d slots", len(w.sent), digests, len(w.slots))
			if digests < 500 {
				t.Errorf("only %d digests in a year", digests)
			}
			differ(t, w.sent, w.model.sent)
		})
	}
}

// differ reports what is in one sorted list and not in the other.
func differ(t *testing.T, got, want []string) {
	t.Helper()
	said := 0
	for len(got)+len(want) > 0 && said < 10 {
		switch {
		case len(got) > 0 && len(want) > 0 && got[0] == want[0]:
			got, want = got[1:], want[1:]
			continue
		case len(want) == 0 || len(got) > 0 && got[0] < want[0]:
			t.Errorf("sent unexpectedly: %s", got[0])
			got = got[1:]
		default:
			t.Errorf("not sent: %s", want[0])
			want = want[1:]
		}
		said++
	}
}
