package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// appended is one group as the log has it.
type appended struct {
	seq    uint64
	lane   fanfare.Lane
	at     time.Time
	group  []byte
	events []*fanfare.Posted
}

// memoryLog is a log that can be held up, and that can fail, with or without
// having kept the group.
type memoryLog struct {
	mu       sync.Mutex
	next     uint64
	groups   []appended
	fail     error         // of each append
	failKept bool          // the append that fails has kept the group
	failRead error         // of a replay
	hold     chan struct{} // an append waits for it
}

func (l *memoryLog) AppendEvents(_ context.Context, lane fanfare.Lane, group []byte) (uint64, error) {
	l.mu.Lock()
	hold := l.hold
	l.mu.Unlock()
	if hold != nil {
		<-hold
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil && !l.failKept {
		return 0, l.fail
	}
	l.next++
	events, err := Decode(group, l.next)
	if err != nil {
		return 0, err
	}
	l.groups = append(l.groups, appended{l.next, lane, time.Now(), bytes.Clone(group), events})
	return l.next, l.fail
}

func (l *memoryLog) ReplayEvents(_ context.Context, since time.Time, visit func(uint64, time.Time, []byte) error) error {
	l.mu.Lock()
	groups, err := slices.Clone(l.groups), l.failRead
	l.mu.Unlock()
	for _, g := range groups {
		if err == nil && !g.at.Before(since) {
			err = visit(g.seq, g.at, g.group)
		}
	}
	return err
}

func (l *memoryLog) set(change func(*memoryLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *memoryLog) kept() []appended {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.groups)
}

// fixed are topics that accept what is a JSON object.
type fixed struct{}

func (fixed) Intake(_, topic string) (fanfare.Lane, func(json.RawMessage) error, error) {
	switch topic {
	case "story":
		return fanfare.Normal, nil, nil
	case "strict":
		return fanfare.Bulk, func(json.RawMessage) error {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/data/title", Message: "is missing"}
		}, nil
	}
	return 0, nil, &fanfare.Error{Code: fanfare.NotFound, Message: "no such topic"}
}

func (fixed) ChangeSeq() uint64 { return 77 }

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func newClock() *clock { return &clock{now: time.Now().UTC()} }

func noFloor() error { return nil }

func event(id string) fanfare.Posted {
	return fanfare.Posted{Service: "news", Topic: "story", Lane: fanfare.TopicLane, Event: fanfare.Event{ID: id, Source: "/test", Data: json.RawMessage(`{"a":1}`)}}
}

func events(ids ...string) []fanfare.Posted {
	list := make([]fanfare.Posted, len(ids))
	for i, id := range ids {
		list[i] = event(id)
	}
	return list
}

// bubble runs a test with a collector on a log in memory, in a bubble of time.
func bubble(t *testing.T, test func(t *testing.T, c *Collector, log *memoryLog, clock *clock)) {
	synctest.Test(t, func(t *testing.T) {
		log, clock := &memoryLog{}, newClock()
		c := Start(Options{Log: log, Topics: fixed{}, Clock: clock, Floor: noFloor})
		defer c.Stop()
		test(t, c, log, clock)
	})
}

// post keeps events and fails the test where nothing was taken.
func post(t *testing.T, c *Collector, list ...fanfare.Posted) []Result {
	t.Helper()
	results, err := c.Post(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestAKeptEventHasAllThatItNeeds(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, clock *clock) {
		list := events("1", "2")
		list[1].Event.Time = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		list[1].Lane = fanfare.Urgent
		list[1].Event.Data = json.RawMessage(`{"text":"<b>&</b>"}`)
		results := post(t, c, list...)
		groups := log.kept()
		if len(groups) != 2 {
			t.Fatalf("%d groups, want one for each of two lanes", len(groups))
		}
		for i, want := range []struct {
			result  int
			lane    fanfare.Lane
			time    time.Time
			data    string
			groupAt int
		}{{1, fanfare.Urgent, list[1].Event.Time, `{"text":"<b>&</b>"}`, 0}, {0, fanfare.Normal, clock.Now(), `{"a":1}`, 1}} {
			got := groups[i].events[0]
			if got.Lane != want.lane || groups[i].lane != want.lane || got.ChangeSeq != 77 || !got.ReceivedAt.Equal(clock.Now()) ||
				!got.Event.Time.Equal(want.time) || string(got.Event.Data) != want.data {
				t.Errorf("kept %+v", got)
			}
			if r := results[want.result]; r.Err != nil || r.Duplicate || r.Ref != got.Ref() || r.Ref.Seq != fanfare.NewEventSeq(groups[i].seq, 0) {
				t.Errorf("answered %+v for %v", r, got.Ref())
			}
		}
	})
}

func TestWhatIsRefusedIsNotKeptAndTheRestIs(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *clock) {
		list := events("good", "topic", "schema", "large", "not json", "lane", "header", "good too")
		list[1].Topic = "unknown"
		list[2].Topic = "strict"
		list[3].Event.Data = json.RawMessage(`"` + strings.Repeat("x", MaxDataBytes) + `"`)
		list[4].Event.Data = json.RawMessage(`{"a":`)
		list[5].Lane = 9
		list[6].Event.Subject = strings.Repeat("s", maxGroupBytes)
		results := post(t, c, list...)
		for i, code := range []fanfare.Code{"", fanfare.NotFound, fanfare.Invalid, fanfare.TooLarge, fanfare.Invalid, fanfare.Invalid, fanfare.TooLarge, ""} {
			if err := results[i].Err; (err == nil) != (code == "") || err != nil && fanfare.CodeOf(err) != code {
				t.Errorf("%q: got %v, want %q", list[i].Event.ID, err, code)
			}
		}
		if groups := log.kept(); len(groups) != 1 || len(groups[0].events) != 2 {
			t.Errorf("kept %d groups", len(groups))
		}
	})
}

// TestDataFullOfMarkupStaysBelowTheLimit would be six times as long with the
// escapes that package json makes for HTML.
func TestDataFullOfMarkupStaysBelowTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *clock) {
		e := event("markup")
		e.Event.Data = json.RawMessage(`"` + strings.Repeat("<", MaxDataBytes-2) + `"`)
		if r := post(t, c, e); r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
		if n := len(log.kept()[0].group); n > MaxDataBytes+1000 {
			t.Errorf("the group has %d bytes", n)
		}
	})
}

func TestPostsThatArriveTogetherShareAnAppend(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *clock) {
		hold := make(chan struct{})
		log.set(func(l *memoryLog) { l.hold = hold })
		var posts sync.WaitGroup
		for i := range 500 {
			posts.Go(func() {
				if r, err := c.Post(t.Context(), events(fmt.Sprint(i))); err != nil || r[0].Err != nil {
					t.Errorf("post %d: %v %+v", i, err, r)
				}
			})
		}
		synctest.Wait() // one append is held up, all others wait
		log.set(func(l *memoryLog) { l.hold = nil })
		close(hold)
		posts.Wait()
		total := 0
		for _, g := range log.kept() {
			total += len(g.events)
		}
		if n := len(log.kept()); n > 2 || total != 500 {
			t.Errorf("%d events in %d appends, want 500 in 2", total, n)
		}
	})
}

func TestAnUrgentEventWaitsForNoMoreThanOneGroupOfBulk(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *clock) {
		hold := make(chan struct{})
		log.set(func(l *memoryLog) { l.hold = hold })
		bulk := make([]fanfare.Posted, 2*fanfare.MaxGroup)
		for i := range bulk {
			bulk[i] = event(fmt.Sprint(i))
			bulk[i].Lane = fanfare.Bulk
		}
		var posts sync.WaitGroup
		posts.Go(func() { post(t, c, bulk...) })
		synctest.Wait() // the first group of bulk is under way
		urgent := event("urgent")
		urgent.Lane = fanfare.Urgent
		posts.Go(func() { post(t, c, urgent) })
		synctest.Wait()
		log.set(func(l *memoryLog) { l.hold = nil })
		close(hold)
		posts.Wait()
		at := slices.IndexFunc(log.kept(), func(g appended) bool { return g.lane == fanfare.Urgent })
		if at != 1 {
			t.Errorf("the urgent event is in group %d of %d, want 1: behind the one that was under way", at, len(log.kept()))
		}
	})
}

func TestGroupsStayWithinTheirLimits(t *testing.T) {
	for _, c := range []struct {
		name      string
		events    int
		dataBytes int
		groups    int
	}{
		{"many small events", 2*fanfare.MaxGroup + 1, 10, 3},
		{"large events", 10, MaxDataBytes - 2, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, collector *Collector, log *memoryLog, _ *clock) {
				list := make([]fanfare.Posted, c.events)
				for i := range list {
					list[i] = event(fmt.Sprint(i))
					list[i].Event.Data = json.RawMessage(`"` + strings.Repeat("x", c.dataBytes) + `"`)
				}
				results := post(t, collector, list...)
				groups := log.kept()
				if len(groups) != c.groups {
					t.Errorf("%d groups, want %d", len(groups), c.groups)
				}
				for _, g := range groups {
					if len(g.group) > maxGroupBytes+10*fanfare.MaxGroup || len(g.events) > fanfare.MaxGroup {
						t.Errorf("a group has %d events and %d bytes", len(g.events), len(g.group))
					}
				}
				seen := map[fanfare.EventRef]bool{}
				for _, r := range results {
					seen[r.Ref] = r.Err == nil
				}
				if len(seen) != c.events {
					t.Errorf("%d different events were answered, want %d", len(seen), c.events)
				}
			})
		})
	}
}

func TestARepeatIsAnsweredWithTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, clock *clock) {
		other, elsewhere := event("a"), event("a")
		other.Event.Source = "/other"
		elsewhere.Service = "weather"
		urgent := event("a")
		urgent.Lane = fanfare.Urgent
		results := post(t, c, event("a"), event("b"), event("a"), other, elsewhere)
		if first := results[0]; first.Duplicate || results[2] != (Result{Ref: first.Ref, Duplicate: true}) {
			t.Errorf("within a group: %+v after %+v", results[2], first)
		}
		if results[3].Duplicate || results[4].Duplicate {
			t.Error("another source or service is another event")
		}
		for name, again := range map[string]fanfare.Posted{"in a later group": event("a"), "in another lane": urgent} {
			if r := post(t, c, again); r[0] != (Result{Ref: results[0].Ref, Duplicate: true}) {
				t.Errorf("%s: %+v, want a duplicate of %v", name, r[0], results[0].Ref)
			}
		}
		restarted := Start(Options{Log: log, Topics: fixed{}, Clock: clock, Floor: noFloor})
		defer restarted.Stop()
		for _, g := range log.kept() {
			restarted.Remember(g.events)
		}
		if r := post(t, restarted, event("a"), event("b"), event("c")); r[0].Ref != results[0].Ref || !r[0].Duplicate ||
			r[1].Ref != results[1].Ref || !r[1].Duplicate || r[2].Duplicate {
			t.Errorf("after a restart: %+v", r)
		}
	})
}

func TestTheSameIDInTwoLanesAtOnceIsOneEvent(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *clock) {
		list := events("a", "a", "a")
		for i, lane := range fanfare.Lanes {
			list[i].Lane = lane
		}
		results := post(t, c, list...)
		if results[0].Duplicate || !results[1].Duplicate || !results[2].Duplicate || results[1].Ref != results[0].Ref || results[2].Ref != results[0].Ref {
			t.Errorf("%+v", results)
		}
		if n := len(log.kept()); n != 1 {
			t.Errorf("%d groups, want 1", n)
		}
	})
}

func TestAFailedAppendReachesItsCallersOnlyAndIsNotLearned(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *clock) {
		before := post(t, c, event("before"))
		hold := make(chan struct{})
		log.set(func(l *memoryLog) { l.hold = hold; l.fail = errors.New("no answer") })
		var failing sync.WaitGroup
		for i := range 3 {
			failing.Go(func() {
				r, err := c.Post(t.Context(), events("lost", "before", "lost"))
				if err != nil || fanfare.CodeOf(r[0].Err) != fanfare.Unavailable || fanfare.CodeOf(r[2].Err) != fanfare.Unavailable || r[2].Duplicate {
					t.Errorf("caller %d: %v %+v", i, err, r)
				}
				if r[1] != (Result{Ref: before[0].Ref, Duplicate: true}) {
					t.Errorf("caller %d: a known event got %+v", i, r[1])
				}
			})
		}
		synctest.Wait()
		close(hold)
		failing.Wait()
		log.set(func(l *memoryLog) { l.hold, l.fail = nil, nil })
		if r := post(t, c, event("lost")); r[0].Err != nil || r[0].Duplicate {
			t.Errorf("sent again: %+v", r[0])
		}
	})
}

// TestAnEventOfAnAppendThatFailedAndWasKeptIsNotKeptTwice is a log that answers
// too late: who sends the event again must not set off a second broadcast.
func TestAnEventOfAnAppendThatFailedAndWasKeptIsNotKeptTwice(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *clock) {
		log.set(func(l *memoryLog) { l.fail, l.failKept = errors.New("time out"), true })
		if r := post(t, c, event("a")); r[0].Err == nil {
			t.Fatal("the append did not fail")
		}
		log.set(func(l *memoryLog) { l.fail, l.failRead = nil, errors.New("not yet") })
		if r := post(t, c, event("a"), event("b")); r[0].Err == nil || r[1].Err == nil {
			t.Errorf("appended without knowing what the log has: %+v", r)
		}
		log.set(func(l *memoryLog) { l.failRead = nil })
		r := post(t, c, event("a"), event("b"))
		if want := log.kept()[0].events[0].Ref(); r[0] != (Result{Ref: want, Duplicate: true}) || r[1].Err != nil || r[1].Duplicate {
			t.Errorf("got %+v, want a duplicate of %v and a new event", r, want)
		}
	})
}

func TestBelowTheDiskFloorNothingIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{}
		var low error = &fanfare.Error{Code: fanfare.DiskFull, Message: "full"}
		c := Start(Options{Log: log, Topics: fixed{}, Clock: newClock(), Floor: func() error { return low }})
		defer c.Stop()
		if r, err := c.Post(t.Context(), events("a")); r != nil || fanfare.CodeOf(err) != fanfare.DiskFull || len(log.kept()) != 0 {
			t.Errorf("got %v, %v", r, err)
		}
		low = nil
		if r := post(t, c, event("a")); r[0].Err != nil || r[0].Duplicate {
			t.Errorf("with room again: %+v", r)
		}
	})
}

func TestStopKeepsWhatWaitsAndRefusesTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *clock) {
		hold := make(chan struct{})
		log.set(func(l *memoryLog) { l.hold = hold })
		var posts sync.WaitGroup
		for i := range 20 {
			posts.Go(func() {
				if r, err := c.Post(t.Context(), events(fmt.Sprint(i))); err != nil || r[0].Err != nil {
					t.Errorf("post %d: %v %+v", i, err, r)
				}
			})
		}
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { c.Stop(); close(stopped) }()
		synctest.Wait()
		if _, err := c.Post(t.Context(), events("late")); fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("after Stop: %v", err)
		}
		select {
		case <-stopped:
			t.Error("stopped before what waited was kept")
		default:
		}
		log.set(func(l *memoryLog) { l.hold = nil })
		close(hold)
		<-stopped
		posts.Wait()
		c.Stop()
	})
}

func TestTooMuchThatWaitsIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, c *Collector, log *memoryLog, _ *clock) {
		hold := make(chan struct{})
		log.set(func(l *memoryLog) { l.hold = hold })
		var posts sync.WaitGroup
		posts.Go(func() { post(t, c, event("under way")) })
		synctest.Wait()
		posts.Go(func() { post(t, c, events("a", "b", "c")...) })
		synctest.Wait()
		waiting := func() (count, bytes *int, unlock func()) {
			c.mu.Lock()
			return &c.count, &c.bytes, c.mu.Unlock
		}
		count, size, unlock := waiting()
		if *count != 3 || *size < 3*100 || *size > 3*1000 {
			t.Errorf("%d events and %d bytes are counted as waiting", *count, *size)
		}
		for _, limit := range []struct {
			now  *int
			most int
		}{{count, maxWaiting}, {size, maxWaitingBytes}} {
			before := *limit.now
			*limit.now = limit.most
			unlock()
			if _, err := c.Post(t.Context(), events("too much")); fanfare.CodeOf(err) != fanfare.Unavailable {
				t.Errorf("got %v", err)
			}
			_, _, unlock = waiting()
			*limit.now = before
		}
		unlock()
		close(hold)
		posts.Wait()
		count, size, unlock = waiting()
		defer unlock()
		if *count != 0 || *size != 0 {
			t.Errorf("%d events and %d bytes are counted when nothing waits", *count, *size)
		}
	})
}

// TestNoAcceptedEventIsKeptTwiceOrLost posts at random, through failures of both
// kinds and restarts, and compares with what the log has in the end.
func TestNoAcceptedEventIsKeptTwiceOrLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log, clock := &memoryLog{}, newClock()
		start := func() *Collector {
			c := Start(Options{Log: log, Topics: fixed{}, Clock: clock, Floor: noFloor})
			err := log.ReplayEvents(context.Background(), time.Time{}, func(seq uint64, _ time.Time, group []byte) error {
				events, err := Decode(group, seq)
				c.Remember(events)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		c := start()
		defer func() { c.Stop() }()
		answered := map[string]fanfare.EventRef{}
		t.Repeat(map[string]func(*rapid.T){
			"post": func(t *rapid.T) {
				ids := rapid.SliceOfN(rapid.StringMatching("[a-h]"), 1, 6).Draw(t, "ids")
				list := events(ids...)
				for i := range list {
					list[i].Lane = rapid.SampledFrom(fanfare.Lanes[:]).Draw(t, "lane")
				}
				results, err := c.Post(context.Background(), list)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range results {
					if r.Err != nil {
						continue
					}
					if first, known := answered[ids[i]]; known && r.Ref != first {
						t.Fatalf("%q was answered %+v, and %v before", ids[i], r, first)
					}
					answered[ids[i]] = r.Ref
				}
			},
			"fail": func(t *rapid.T) {
				kept := rapid.Bool().Draw(t, "kept")
				log.set(func(l *memoryLog) { l.fail, l.failKept = errors.New("time out"), kept })
			},
			"work":    func(*rapid.T) { log.set(func(l *memoryLog) { l.fail, l.failKept = nil, false }) },
			"restart": func(*rapid.T) { c.Stop(); c = start() },
			"": func(t *rapid.T) {
				kept := map[string]fanfare.EventRef{}
				for _, g := range log.kept() {
					for _, p := range g.events {
						if first, twice := kept[p.Event.ID]; twice {
							t.Fatalf("%q was kept as %v and as %v", p.Event.ID, first, p.Ref())
						}
						kept[p.Event.ID] = p.Ref()
					}
				}
				for id, ref := range answered {
					if kept[id] != ref {
						t.Fatalf("%q was accepted as %v and kept as %v", id, ref, kept[id])
					}
				}
			},
		})
	})
}
