package storetest_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// TestAnswersOfFiltersAreKept compares with a map: the first answer for a delivery stays, whatever group a later question
// or answer comes in.
func TestAnswersOfFiltersAreKept(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		event := frozenEvent(1, noon, 700, 3)
		freeze(t, s, event)
		day := fanfare.DayOf(noon)
		var all []fanfare.DeliveryRef
		for i := range event.Manifests {
			for position := range event.Manifests[i].Members() {
				all = append(all, fanfare.DeliveryRef{Day: day, Manifest: event.Manifests[i].ID, Position: uint32(position)})
			}
		}
		model := deliveries.FilterAnswers{}
		check := func(t *rapid.T, refs []fanfare.DeliveryRef, got deliveries.FilterAnswers) {
			for _, ref := range refs {
				want, known := model[ref]
				answer, found := got[ref]
				if found != known || answer != want {
					t.Fatalf("the answer for %s is %d (%t), want %d (%t)", ref, answer, found, want, known)
				}
			}
		}
		rapid.Check(t, func(rt *rapid.T) {
			refs := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 40, func(ref fanfare.DeliveryRef) fanfare.DeliveryRef { return ref }).Draw(rt, "refs")
			if rapid.Bool().Draw(rt, "ask") {
				got, err := s.FilterAnswers(t.Context(), day, refs)
				if err != nil {
					t.Fatal(err)
				}
				check(rt, refs, got)
				return
			}
			answers := deliveries.FilterAnswers{}
			for _, ref := range refs {
				answers[ref] = deliveries.FilterAnswer(rapid.IntRange(0, 2).Draw(rt, "answer"))
				if _, known := model[ref]; !known {
					model[ref] = answers[ref]
				}
			}
			stored, err := s.KeepFilterAnswers(t.Context(), day, answers)
			if err != nil {
				t.Fatal(err)
			}
			check(rt, refs, stored)
		})
		got, err := s.FilterAnswers(t.Context(), day, all)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, model) {
			t.Errorf("%d answers are stored, want %d", len(got), len(model))
		}
		other := slices.IndexFunc(all, func(ref fanfare.DeliveryRef) bool { return ref.Manifest == event.Manifests[1].ID })
		last, err := s.FilterAnswers(t.Context(), day, all[other:])
		if err != nil {
			t.Fatal(err)
		}
		for ref := range last {
			if ref.Manifest != event.Manifests[1].ID {
				t.Fatalf("an answer for %s is that of another manifest", ref)
			}
		}
	})
}
