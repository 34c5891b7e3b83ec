package ingest

import (
	"fmt"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func TestIDIsKnownForTheHorizon(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, every := range []time.Duration{time.Second, 7 * time.Minute, 59 * time.Minute, Horizon} {
		t.Run(fmt.Sprintf("an event every %v", every), func(t *testing.T) {
			m := newRecentIDs()
			id := func(n int) identity { e := event(fmt.Sprint(n)); return identify(&e) }
			for n := range int(5*Horizon/every) + 1 {
				at := start.Add(time.Duration(n) * every)
				m.add(id(n), fanfare.EventRef{Seq: fanfare.EventSeq(n + 1)}, at)
				for _, age := range []time.Duration{0, every, Horizon / 2, Horizon} {
					if old := n - int(age/every); old >= 0 {
						if ref, ok := m.find(id(old)); !ok || ref.Seq != fanfare.EventSeq(old+1) {
							t.Fatalf("after %v the event of %v before is %v, %v", time.Duration(n)*every, age, ref, ok)
						}
					}
				}
			}
		})
	}
}

func TestOldIDsAreForgotten(t *testing.T) {
	m := newRecentIDs()
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	first := event("first")
	m.add(identify(&first), fanfare.EventRef{Seq: 1}, start)
	for n := range 300 {
		e := event(fmt.Sprint(n))
		m.add(identify(&e), fanfare.EventRef{Seq: 2}, start.Add(time.Duration(n)*time.Minute))
	}
	if _, known := m.find(identify(&first)); known {
		t.Error("an event of five hours ago is still known")
	}
	if n := len(m.current) + len(m.previous); n > 123 {
		t.Errorf("%d ids are known, two hours have 120", n)
	}
}

func TestLastIDsAreKnownAtAnyRate(t *testing.T) {
	m := newRecentIDs()
	m.maxSize = 100
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ids := make([]identity, 1000)
	for n := range ids {
		e := event(fmt.Sprint(n))
		ids[n] = identify(&e)
		m.add(ids[n], fanfare.EventRef{Seq: fanfare.EventSeq(n)}, now)
		for age := range min(n+1, 100) {
			if _, ok := m.find(ids[n-age]); !ok {
				t.Fatalf("of %d ids, the one %d before the last is not known", n+1, age)
			}
		}
		if size := len(m.current) + len(m.previous); size > 200 {
			t.Fatalf("%d ids are kept, at most 200 should be", size)
		}
	}
}

func TestIdentityDependsOnServiceSourceAndID(t *testing.T) {
	seen := map[identity][3]string{}
	for _, parts := range [][3]string{{"a", "b", "c"}, {"ab", "", "c"}, {"a", "bc", ""}, {"", "ab", "c"}, {"a", "", "bc"}, {"", "", "abc"}, {"abc", "", ""}} {
		id := identify(&fanfare.AcceptedEvent{Service: parts[0], Event: fanfare.Event{Source: parts[1], ID: parts[2]}})
		if other, ok := seen[id]; ok {
			t.Errorf("%q and %q have the same identity", parts, other)
		}
		seen[id] = parts
	}
}
