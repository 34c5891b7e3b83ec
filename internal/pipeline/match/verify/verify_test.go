package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// A clock advances by a microsecond at each read, so that all checks take about the same time. The
// test sets the processor time.
type clock struct{ elapsed, processor time.Duration }

func (c *clock) Elapsed() time.Duration {
	c.elapsed += time.Microsecond
	return c.elapsed
}
func (c *clock) Processor() time.Duration { return c.processor }

// A wrongIndex reports some conditions that are false, and omits some that are true.
type wrongIndex struct {
	*condition.Index
	extra, lost func(c *condition.Condition) bool
	correct     int // matches with correct answers before the wrong ones
}

func (x *wrongIndex) MatchReported(key condition.Key, event condition.Event, hits []condition.Hit, r *condition.Report) ([]condition.Hit, error) {
	hits, err := x.Index.MatchReported(key, event, hits, r)
	if x.correct > 0 {
		x.correct--
		return hits, err
	}
	var at condition.Cursor
	var wrong, gone []condition.Condition
	for more := true; more; {
		more = x.Conditions(key, &at, 100, func(c condition.Condition) {
			if x.extra != nil && x.extra(&c) {
				wrong = append(wrong, c)
			}
			if x.lost != nil && x.lost(&c) {
				gone = append(gone, c)
			}
		}) == 100
	}
	drop := func(c *condition.Condition) {
		r.Filters = slices.DeleteFunc(r.Filters, func(n uint32) bool { return c.Rule == "" && n == c.Number })
		for _, h := range x.hitsOf(key, c) {
			hits = slices.DeleteFunc(hits, func(o condition.Hit) bool { return o.Place == h.Place })
		}
	}
	for i := range gone {
		drop(&gone[i])
	}
	for i := range wrong {
		drop(&wrong[i])
		if wrong[i].Rule == "" {
			r.Filters = append(r.Filters, wrong[i].Number)
		}
		hits = append(hits, x.hitsOf(key, &wrong[i])...)
	}
	slices.SortFunc(hits, func(a, b condition.Hit) int { return cmp.Compare(a.Place, b.Place) })
	return hits, err
}

func (x *wrongIndex) hitsOf(key condition.Key, c *condition.Condition) []condition.Hit {
	if c.Rule == "" {
		return x.FilterHits(key, c.Filter, nil)
	}
	return []condition.Hit{{Place: c.Place, Subscriber: c.Subscriber, Channel: c.Channel}}
}

// A memoryStore has entries and the quarantine in memory.
type memoryStore struct {
	entries    map[fanfare.RowID]condition.Entry
	quarantine []condition.Quarantined
	fails      error
}

func (s *memoryStore) ConditionEntries(_ context.Context, _ uint32, subscribers []fanfare.RowID, visit func(*condition.Entry) error) error {
	for _, e := range s.entries {
		if slices.Contains(subscribers, e.Subscriber) {
			if err := visit(&e); err != nil {
				return err
			}
		}
	}
	return s.fails
}

func (s *memoryStore) Quarantine(_ context.Context, list []condition.Quarantined) error {
	if s.fails == nil {
		s.quarantine = append(s.quarantine, list...)
	}
	return s.fails
}

func (s *memoryStore) Release(_ context.Context, list []condition.Quarantined) error {
	s.quarantine = slices.DeleteFunc(s.quarantine, func(q condition.Quarantined) bool { return slices.Contains(list, q) })
	return s.fails
}

func (s *memoryStore) Quarantined() []condition.Quarantined { return slices.Clone(s.quarantine) }

// A bench is a Verifier with its index, store and clock.
type bench struct {
	t        *testing.T
	index    *wrongIndex
	store    *memoryStore
	clock    *clock
	log      strings.Builder
	verifier *Verifier
	topic    Topic
}

func newBench(t *testing.T, share Share) *bench {
	b := &bench{t: t, index: &wrongIndex{Index: condition.New()}, store: &memoryStore{entries: map[fanfare.RowID]condition.Entry{}}, clock: &clock{},
		topic: Topic{condition.Key{Service: "ops", Topic: "load"}, 7}}
	err := b.index.Define(b.topic.Key, condition.Definition{
		Schema: json.RawMessage(`{"properties":{"n":{"type":"integer"},"s":{"type":"string"}}}`),
		Rules:  []condition.Rule{{Name: "least", When: "event.n >= sub.least", Params: map[string]string{"least": "number"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.restart(share)
	return b
}

// restart makes a new Verifier on the same store.
func (b *bench) restart(share Share) {
	b.verifier = New(Options{Index: b.index, Store: b.store, Share: share, Meter: b.clock, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&b.log, nil))})
}

// filter adds a subscription whose subscriber is place / 10.
func (b *bench) filter(place fanfare.RowID, filter string) {
	b.put(condition.Entry{Place: place, Subscriber: place / 10, Filter: filter})
}

func (b *bench) rule(place fanfare.RowID, least int) {
	b.put(condition.Entry{Place: place, Subscriber: place / 10, Rule: "least", Params: json.RawMessage(fmt.Sprintf(`{"least": %d}`, least))})
}

func (b *bench) put(e condition.Entry) {
	b.t.Helper()
	if err := b.index.Add(b.topic.Key, []condition.Entry{e}); err != nil {
		b.t.Fatal(err)
	}
	b.store.entries[e.Place] = e
}

// match returns the subscriptions that an event with n matches.
func (b *bench) match(n int) (places []fanfare.RowID) {
	b.t.Helper()
	hits, err := b.verifier.Match(b.t.Context(), b.topic, "evt-1", condition.Event{Data: fmt.Appendf(nil, `{"n":%d,"s":"x"}`, n)}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, h := range hits {
		places = append(places, h.Place)
	}
	return places
}

func (b *bench) want(n int, want ...fanfare.RowID) {
	b.t.Helper()
	if got := b.match(n); !slices.Equal(got, want) {
		b.t.Errorf("an event with %d reaches %v, want %v", n, got, want)
	}
}

func isFilter(text string) func(*condition.Condition) bool {
	return func(c *condition.Condition) bool { return c.Rule == "" && c.Filter == text }
}

func TestWronglyReportedConditionIsIgnored(t *testing.T) {
	b := newBench(t, Unlimited)
	b.filter(11, "event.n > 5")
	b.filter(12, "event.n > 100")
	b.filter(21, "event.n > 100")
	b.filter(31, "event.n > 6")
	b.rule(32, 5)
	b.rule(41, 500)
	b.index.extra = func(c *condition.Condition) bool { return c.Filter == "event.n > 100" || c.Place == 41 }
	b.want(7, 11, 31, 32)
	s := b.verifier.Status()
	if s.Extra != 2 || s.Missing != 0 || len(s.Quarantined) != 2 {
		t.Errorf("status is %+v", s)
	}
	for _, text := range []string{"event.n > 100", "evt-1", "index=true", "evaluator=false", "ops/load", "event.n >= sub.least"} {
		if !strings.Contains(b.log.String(), text) {
			t.Errorf("the log does not say %q:\n%s", text, b.log.String())
		}
	}
	b.want(7, 11, 31, 32)
	b.want(101, 11, 12, 21, 31, 32)
	b.want(501, 11, 12, 21, 31, 32, 41)
	if s := b.verifier.Status(); s.Extra != 2 {
		t.Errorf("conditions in quarantine are counted again: %+v", s)
	}
	b.restart(0) // the stored quarantine is in force without any check
	b.want(7, 11, 31, 32)
	b.want(501, 11, 12, 21, 31, 32, 41)
}

func TestMissedConditionIsFound(t *testing.T) {
	b := newBench(t, DefaultShare)
	for place := fanfare.RowID(10); place < 60; place++ {
		b.filter(place, fmt.Sprintf("event.n > %d", 1000+place))
	}
	b.filter(61, "event.n > 5")
	b.rule(71, 6)
	b.index.lost = func(c *condition.Condition) bool { return c.Filter == "event.n > 5" || c.Place == 71 }
	for range 200 {
		b.clock.processor += 10 * time.Millisecond
		b.clock.elapsed += 3 * time.Millisecond
		if b.match(7); b.verifier.Status().Missing == 2 {
			b.want(7, 61, 71)
			return
		}
	}
	t.Errorf("not found: %+v", b.verifier.Status())
}

func TestReportedConditionIsCheckedAsOftenAsDocumented(t *testing.T) {
	for _, c := range []struct {
		conditions int
		perEvent   time.Duration // processor time
	}{{10, time.Millisecond}, {100, time.Millisecond}, {1000, 2 * time.Millisecond}, {1000, 20 * time.Millisecond}} {
		t.Run(fmt.Sprint(c.conditions, " at ", c.perEvent), func(t *testing.T) {
			for wrong := range 4 {
				b := newBench(t, DefaultShare)
				for i := range c.conditions / 2 {
					b.filter(fanfare.RowID(10+i), fmt.Sprintf("event.n > %d", -i))
					b.rule(fanfare.RowID(5000+i), -i)
				}
				wrongFilter := fmt.Sprintf("event.n > %d", 1_000_000+wrong) // false
				b.filter(fanfare.RowID(4000+wrong), wrongFilter)
				event := func() {
					b.clock.processor += c.perEvent
					b.clock.elapsed += readInterval
					b.match(5)
				}
				for range 2 + 5*wrong { // so that the wrong answers begin anywhere in the round
					event()
				}
				before, events := b.verifier.Status(), 0
				b.index.extra = isFilter(wrongFilter)
				for b.verifier.Status().Extra == 0 && events < 100_000 {
					events++
					event()
				}
				now := b.verifier.Status()
				checks := now.Reported + now.Unreported - before.Reported - before.Unreported
				cost := float64(now.Time-before.Time) / float64(checks)
				slice := min(float64(c.perEvent)*float64(DefaultShare), float64(maxSlice))
				k := slice / cost
				if bound := int(math.Ceil(2 * float64(c.conditions+1) / k)); events > bound+1 {
					t.Errorf("found at event %d, the formula says %d: %.1f checks of %.1f us for each event", events, bound, k, cost/1000)
				}
			}
		})
	}
}

func TestConcurrentChangeIsNoContradiction(t *testing.T) {
	b := newBench(t, Unlimited)
	b.filter(11, "event.n > 100")
	b.index.extra = isFilter("event.n > 100")
	first := true
	b.index.extra = func(c *condition.Condition) bool {
		was := first
		first = false // the second match is correct, as after a change
		return was && c.Filter == "event.n > 100"
	}
	b.match(7)
	if s := b.verifier.Status(); s.Extra != 0 || len(s.Quarantined) != 0 {
		t.Errorf("%+v", s)
	}
}

func TestChangedSubscriptionLeavesTheQuarantine(t *testing.T) {
	b := newBench(t, Unlimited)
	b.rule(41, 500)
	b.index.extra = func(c *condition.Condition) bool { return c.Place == 41 && strings.Contains(string(c.Params), "500") }
	b.want(7)
	if n := len(b.store.quarantine); n != 1 {
		t.Fatalf("%d conditions in quarantine", n)
	}
	b.rule(41, 3)
	b.want(7, 41)
	if n := len(b.store.quarantine); n != 0 {
		t.Errorf("%d conditions in quarantine", n)
	}
}

func TestMatchFailsWhileTheStoreFails(t *testing.T) {
	b := newBench(t, Unlimited)
	b.filter(11, "event.n > 100")
	b.index.extra = isFilter("event.n > 100")
	b.store.fails = errors.New("away")
	_, err := b.verifier.Match(t.Context(), b.topic, "evt-1", condition.Event{Data: []byte(`{"n":1}`)}, nil)
	if err == nil || errors.Is(err, ErrUndecided) {
		t.Errorf("error is %v, want that of the store", err)
	}
	b.store.fails = nil
	b.want(1)
}

func TestMatchFailsOnAnUndecidedCondition(t *testing.T) {
	b := newBench(t, Unlimited)
	const long = "event.l.all(a, event.l.all(b, event.l.all(c, a == b || b == c || a != c)))"
	if err := b.index.Define(b.topic.Key, condition.Definition{}); err != nil {
		t.Fatal(err)
	}
	b.filter(11, long)
	b.store.quarantine = []condition.Quarantined{{Topic: b.topic.Number, Filter: long}}
	data := `{"l":[1` + strings.Repeat(",1", 500) + `]}`
	_, err := b.verifier.Match(t.Context(), b.topic, "evt-1", condition.Event{Data: []byte(data)}, nil)
	if !errors.Is(err, ErrUndecided) {
		t.Errorf("error is %v", err)
	}
}

func TestChecksUseTheirShareOfTheProcessor(t *testing.T) {
	b := newBench(t, DefaultShare)
	for i := range 500 {
		b.filter(fanfare.RowID(10+i), fmt.Sprintf("event.n > %d", -i))
	}
	for range 2000 {
		b.clock.processor += 100 * time.Microsecond
		b.clock.elapsed += 100 * time.Microsecond
		b.match(7)
	}
	used, all := b.verifier.Status().Time, b.clock.processor
	if share := float64(used) / float64(all); share > float64(DefaultShare)*1.05 || share < float64(DefaultShare)*0.5 {
		t.Errorf("the checks took %.4f of the processor time, %v of %v", share, used, all)
	}
}
