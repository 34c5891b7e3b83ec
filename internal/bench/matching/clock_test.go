package matching

import (
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/bench/benchtest"
	"fanfare.dev/fanfare/internal/bench/report"
)

func TestTheClocksOfQuotesStopWhenTheManifestsAreDurable(t *testing.T) {
	_, s := benchtest.NewSlowStore(t, 1)
	body := []byte(`{"id":"quote-0"}` + "\n" + `{"id":"quote-1"}` + "\n")
	if err := PublishAll(s, body, 2); err != nil {
		t.Fatal(err)
	}
	took, err := untilLastManifest(s, "quote-0", "quote-1")
	if err != nil {
		t.Fatal(err)
	}
	benchtest.AfterCommits(t, "C2 at full pace", took, 1)

	r := report.Record{Value: 20}
	if err := halfPace(s, &r, newStockMarket(200_000, 1)); err != nil {
		t.Fatal(err)
	}
	benchtest.AfterCommits(t, "C2 at half pace", time.Duration(r.P50Millis*float64(time.Millisecond)), 1)
}

func TestTheClockOfAlertsBesideAddsStopsWhenTheManifestIsDurable(t *testing.T) {
	f, s := benchtest.NewSlowStore(t, 1)
	watch := s.WatchManifests()
	if err := PublishAll(s, []byte(`{"id":"b10-0"}`+"\n"), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WaitIdle(func(int64) {}); err != nil {
		t.Fatal(err)
	}
	if err := watch.End(s); err != nil {
		t.Fatal(err)
	}
	all, err := s.Events([]string{"b10-0"})
	if err != nil {
		t.Fatal(err)
	}
	took, err := watch.UntilManifests(all)
	if err != nil {
		t.Fatal(err)
	}
	benchtest.AfterCommits(t, "B10 and L4", time.Duration(took[0]*float64(time.Millisecond)), 1)
	if _, err := watch.DurableAt(f.Events[0].Stages.Frozen.Add(time.Hour)); err == nil {
		t.Error("manifests that no read has shown are said to be durable")
	}
}

func TestTheClockOfARoundOfQuotesStopsWhenTheOutcomesAreDurable(t *testing.T) {
	_, s := benchtest.NewSlowStore(t, 1)
	for _, id := range []string{"q0", "q1"} { // two transactions each, one behind the other
		if err := PublishAll(s, []byte(`{"id":"`+id+`"}`+"\n"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.WaitIdle(func(int64) {}); err != nil {
		t.Fatal(err)
	}
	seen := time.Now()
	all, err := s.Events([]string{"q0", "q1"})
	if err != nil {
		t.Fatal(err)
	}
	whole, each := roundTimes(all, seen)
	benchtest.AfterCommits(t, "C1, the round", whole, 4)
	benchtest.AfterCommits(t, "C1, the first quote", time.Duration(each[0]*float64(time.Millisecond)), 2)
	benchtest.AfterCommits(t, "C1, the second quote", time.Duration(each[1]*float64(time.Millisecond)), 3)
}
