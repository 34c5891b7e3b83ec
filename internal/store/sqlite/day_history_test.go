package sqlite

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// TestHistoryIsCompleteHoweverFarTheRunsAre asks for people and events at every
// stage: nothing indexed, some runs, merged runs, and events behind them.
func TestHistoryIsCompleteHoweverFarTheRunsAre(t *testing.T) {
	s, err := OpenDeliveries(t.TempDir(), Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	day := fanfare.DayOf(at)
	random := rand.New(rand.NewPCG(1, 2))
	want := map[fanfare.Place][]fanfare.EventSeq{}
	ids := map[string]fanfare.EventSeq{}
	stream := uint64(0)
	check := func(when string) {
		t.Helper()
		for person, events := range want {
			got, err := s.History(t.Context(), day, person)
			if err != nil {
				t.Fatal(err)
			}
			newestFirst := slices.Clone(events)
			slices.Reverse(newestFirst)
			if !slices.Equal(got, newestFirst) {
				t.Fatalf("%s: person %x has events %v, want %v", when, person, got, newestFirst)
			}
		}
		for id, seq := range ids {
			if got, err := s.FindEvent(t.Context(), day, "news", id); err != nil || got != seq {
				t.Fatalf("%s: event %q is %v (%v), want %v", when, id, got, err, seq)
			}
		}
	}
	for round := range 25 {
		for range random.IntN(20) {
			stream++
			seq := fanfare.NewEventSeq(stream, 0)
			id := fmt.Sprintf("story-%d", stream)
			ids[id] = seq
			members := map[fanfare.Place]bool{}
			for range random.IntN(6) {
				members[fanfare.NewPlace(random.IntN(3), uint32(random.IntN(5)))] = true
			}
			section := fanfare.Section{Channel: 1, Template: 1}
			for person := range members {
				section.Members = append(section.Members, fanfare.Member{Subscriber: person, Subscriptions: []fanfare.Place{person}})
				want[person] = append(want[person], seq)
			}
			slices.SortFunc(section.Members, func(a, b fanfare.Member) int { return int(int64(a.Subscriber) - int64(b.Subscriber)) })
			frozen := &fanfare.Frozen{
				Posted: &fanfare.Posted{Service: "news", Topic: "story", ReceivedAt: at, Seq: seq, Event: fanfare.Event{ID: id, Data: json.RawMessage(`{}`)}},
				KeptAt: at, MatchedAt: at, Messages: int64(len(members)),
			}
			if len(members) > 0 {
				first := section.Members[0].Subscriber.Partition()
				frozen.Manifests = []fanfare.Manifest{{ID: fanfare.NewManifestID(seq, first), Sections: []fanfare.Section{section}}}
			}
			if _, err := s.Freeze(t.Context(), []*fanfare.Frozen{frozen}, at); err != nil {
				t.Fatal(err)
			}
		}
		check(fmt.Sprintf("round %d before indexing", round))
		if _, err := s.IndexHistory(t.Context(), day); err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			t.Fatal(err)
		}
		for merged := true; merged; {
			if merged, err = s.MergeHistory(t.Context(), day); err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
				t.Fatal(err)
			}
		}
		check(fmt.Sprintf("round %d after indexing", round))
	}
	if len(want) == 0 || len(ids) < 100 {
		t.Fatalf("the test checked %d people and %d events, too few", len(want), len(ids))
	}
}
