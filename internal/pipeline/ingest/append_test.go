package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"fanfare.dev/fanfare"
)

func TestConcurrentPostsShareAnAppend(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
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
		synctest.Wait() // one append blocks, all others wait
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

func TestUrgentEventWaitsForOneGroupAtMost(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
		hold := make(chan struct{})
		log.set(func(l *memoryLog) { l.hold = hold })
		bulk := make([]fanfare.AcceptedEvent, 2*fanfare.MaxGroup)
		for i := range bulk {
			bulk[i] = event(fmt.Sprint(i))
			bulk[i].Lane = fanfare.Bulk
		}
		var posts sync.WaitGroup
		posts.Go(func() { post(t, c, bulk...) })
		synctest.Wait() // the first group of bulk is being appended
		urgent := event("urgent")
		urgent.Lane = fanfare.Urgent
		posts.Go(func() { post(t, c, urgent) })
		synctest.Wait()
		log.set(func(l *memoryLog) { l.hold = nil })
		close(hold)
		posts.Wait()
		at := slices.IndexFunc(log.kept(), func(g appended) bool { return g.lane == fanfare.Urgent })
		if at != 1 {
			t.Errorf("the urgent event is in group %d of %d, want 1: after the one that was being appended", at, len(log.kept()))
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
			bubble(t, func(t *testing.T, collector *Ingester, log *memoryLog, _ *testClock) {
				list := make([]fanfare.AcceptedEvent, c.events)
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

func TestFailedAppendIsReportedToItsCallers(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
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

// TestEventOfAFailedAppendIsADuplicate has a log that stores an event and returns an error. The same
// event must not become a second broadcast.
func TestEventOfAFailedAppendIsADuplicate(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
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
