package bench

import (
	"testing"
	"time"
)

func TestTheClocksOfQuotesStopWhenTheManifestsAreDurable(t *testing.T) {
	_, s := newSlowStore(t, 1)
	body := []byte(`{"id":"quote-0"}` + "\n" + `{"id":"quote-1"}` + "\n")
	if err := s.publishAll(body, 2); err != nil {
		t.Fatal(err)
	}
	took, err := s.untilLastManifest("quote-0", "quote-1")
	if err != nil {
		t.Fatal(err)
	}
	afterCommits(t, "C2 at full pace", took, 1)

	r := Record{Value: 20}
	if err := s.halfPace(&r, newMarket(200_000, 1)); err != nil {
		t.Fatal(err)
	}
	afterCommits(t, "C2 at half pace", time.Duration(r.P50Millis*float64(time.Millisecond)), 1)
}

func TestTheClockOfAlertsBesideAddsStopsWhenTheManifestIsDurable(t *testing.T) {
	f, s := newSlowStore(t, 1)
	watch := s.watchManifests()
	if err := s.publishAll([]byte(`{"id":"b10-0"}`+"\n"), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.quiet(func(int64) {}); err != nil {
		t.Fatal(err)
	}
	if err := watch.end(s); err != nil {
		t.Fatal(err)
	}
	all, err := s.broadcasts([]string{"b10-0"})
	if err != nil {
		t.Fatal(err)
	}
	took, err := watch.untilManifests(all)
	if err != nil {
		t.Fatal(err)
	}
	afterCommits(t, "B10 and L4", time.Duration(took[0]*float64(time.Millisecond)), 1)
	if _, err := watch.durableAt(f.events[0].Stages.Frozen.Add(time.Hour)); err == nil {
		t.Error("manifests that no read has shown are said to be durable")
	}
}

func TestTheClockOfARoundOfQuotesStopsWhenTheOutcomesAreDurable(t *testing.T) {
	_, s := newSlowStore(t, 1)
	for _, id := range []string{"q0", "q1"} { // two transactions each, one behind the other
		if err := s.publishAll([]byte(`{"id":"`+id+`"}`+"\n"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.quiet(func(int64) {}); err != nil {
		t.Fatal(err)
	}
	seen := time.Now()
	all, err := s.broadcasts([]string{"q0", "q1"})
	if err != nil {
		t.Fatal(err)
	}
	whole, each := roundTimes(all, seen)
	afterCommits(t, "C1, the round", whole, 4)
	afterCommits(t, "C1, the first quote", time.Duration(each[0]*float64(time.Millisecond)), 2)
	afterCommits(t, "C1, the second quote", time.Duration(each[1]*float64(time.Millisecond)), 3)
}
