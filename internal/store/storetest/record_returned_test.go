package storetest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// returnedEntry is what came back of a delivery of the first manifest of an event.
func returnedEntry(f *fanfare.MatchResult, position uint32, state fanfare.State) fanfare.Entry {
	e := entry(f, position, 0, state)
	e.Returned, e.Code, e.Text, e.At = true, 550, "bounced", noon.Add(time.Hour)
	return e
}

// attemptsOf lists the attempts of a delivery of the first manifest of an event, as
// "number state".
func attemptsOf(t *testing.T, s *deliveries.Store, f *fanfare.MatchResult, position uint32) (list []string) {
	t.Helper()
	err := s.Attempts(t.Context(), f.Posted.Ref().Day, f.Manifests[0].ID, position, position+1, func(e *fanfare.Entry) error {
		list = append(list, fmt.Sprint(e.Attempt, " ", e.State))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func expectAttempts(t *testing.T, s *deliveries.Store, f *fanfare.MatchResult, position uint32, want ...string) {
	t.Helper()
	if got := attemptsOf(t, s, f, position); !slices.Equal(got, want) {
		t.Errorf("delivery %d has %q, want %q", position, got, want)
	}
}

func TestABounceChangesOnlyAnAcceptedDelivery(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		f := frozenEvent(5, noon, 6)
		day := f.Posted.Ref().Day
		freeze(t, s, f)
		commit := func(entries ...fanfare.Entry) {
			t.Helper()
			if err := s.Commit(t.Context(), day, &fanfare.Commit{Entries: entries}); err != nil {
				t.Fatal(err)
			}
		}
		commit(entry(f, 0, 1, fanfare.Accepted), entry(f, 1, 1, fanfare.Deferred), entry(f, 1, 2, fanfare.Accepted),
			entry(f, 2, 1, fanfare.Failed), entry(f, 3, 1, fanfare.Deferred))
		var back []fanfare.Entry
		for position := range uint32(5) { // nothing is known of the last
			back = append(back, returnedEntry(f, position, fanfare.Failed))
		}
		// In one group with its attempt, the first of two counts.
		back = append(back, entry(f, 5, 1, fanfare.Accepted), returnedEntry(f, 5, fanfare.Delivered), returnedEntry(f, 5, fanfare.Failed))
		for range 2 { // whoever does not know that it was kept does it again
			commit(back...)
			expectAttempts(t, s, f, 0, "1 accepted", "2 failed")
			expectAttempts(t, s, f, 1, "1 deferred", "2 accepted", "3 failed")
			expectAttempts(t, s, f, 2, "1 failed")
			expectAttempts(t, s, f, 3, "1 deferred")
			expectAttempts(t, s, f, 4)
			expectAttempts(t, s, f, 5, "1 accepted", "2 delivered")
		}
	})
}

func TestABounceChangesTheCountsOfACompletedBroadcastOnce(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		f, other := frozenEvent(5, noon, 4), frozenEvent(6, noon, 1)
		day := f.Posted.Ref().Day
		freeze(t, s, f, other)
		var sent fanfare.Commit
		for position := range uint32(4) {
			sent.Entries = append(sent.Entries, entry(f, position, 1, fanfare.Accepted))
		}
		sent.Entries = append(sent.Entries, entry(other, 0, 1, fanfare.Accepted))
		sent.Completions = []fanfare.Completion{
			{Seq: f.Posted.Seq, Progress: fanfare.Progress{First: noon, Last: noon, Completed: noon, Counts: fanfare.Counts{fanfare.Accepted: 4}}},
			{Seq: other.Posted.Seq, Progress: fanfare.Progress{First: noon, Last: noon, Completed: noon, Counts: fanfare.Counts{fanfare.Accepted: 1}}},
		}
		if err := s.Commit(t.Context(), day, &sent); err != nil {
			t.Fatal(err)
		}
		back := &fanfare.Commit{
			Entries: []fanfare.Entry{
				returnedEntry(f, 0, fanfare.Failed), returnedEntry(f, 1, fanfare.Delivered), returnedEntry(other, 0, fanfare.Failed), returnedEntry(f, 0, fanfare.Delivered),
			},
			Corrections: []int{0, 1, 2, 3},
		}
		for range 2 {
			if err := s.Commit(t.Context(), day, back); err != nil {
				t.Fatal(err)
			}
			for of, want := range map[*fanfare.MatchResult]fanfare.Counts{
				f:     {fanfare.Accepted: 2, fanfare.Failed: 1, fanfare.Delivered: 1},
				other: {fanfare.Failed: 1},
			} {
				b, err := s.Broadcast(t.Context(), of.Posted.Ref())
				if err != nil || b.Counts != want || b.State != "completed" {
					t.Errorf("%v: %s with %v (%v), want %v", of.Posted.Seq, b.State, b.Counts, err, want)
				}
				if len(b.Reasons) != 1 || b.Reasons[0].State != "failed" || b.Reasons[0].Deliveries != 1 {
					t.Errorf("%v: the reasons are %+v", of.Posted.Seq, b.Reasons)
				}
			}
		}
	})
}
