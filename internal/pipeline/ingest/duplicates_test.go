package ingest

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
)

func TestDuplicateReturnsTheFirstEvent(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, clock *testClock) {
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
		for name, again := range map[string]fanfare.AcceptedEvent{"in a later group": event("a"), "in another lane": urgent} {
			if r := post(t, c, again); r[0] != (Result{Ref: results[0].Ref, Duplicate: true}) {
				t.Errorf("%s: %+v, want a duplicate of %v", name, r[0], results[0].Ref)
			}
		}
		restarted := Start(Options{Log: log, Topics: fixed{}, Clock: clock, Floor: noFloor})
		defer restarted.Stop()
		for _, g := range log.kept() {
			restarted.LoadIDs(g.events)
		}
		if r := post(t, restarted, event("a"), event("b"), event("c")); r[0].Ref != results[0].Ref || !r[0].Duplicate ||
			r[1].Ref != results[1].Ref || !r[1].Duplicate || r[2].Duplicate {
			t.Errorf("after a restart: %+v", r)
		}
	})
}

func TestSameIDInTwoLanesIsOneEvent(t *testing.T) {
	bubble(t, func(t *testing.T, c *Ingester, log *memoryLog, _ *testClock) {
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

// TestAcceptedEventsAreStoredOnce posts at random, with both kinds of failures and restarts, and
// compares the answers with the log.
func TestAcceptedEventsAreStoredOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log, clock := &memoryLog{}, newClock()
		start := func() *Ingester {
			c := Start(Options{Log: log, Topics: fixed{}, Clock: clock, Floor: noFloor})
			err := log.ReplayEvents(context.Background(), time.Time{}, func(seq uint64, _ time.Time, group []byte) error {
				events, err := eventgroup.Decode(group, seq)
				c.LoadIDs(events)
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
