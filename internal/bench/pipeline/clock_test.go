package pipeline

import (
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/bench/benchtest"
	"fanfare.dev/fanfare/internal/bench/report"
)

func TestTheClockOfABatchStopsWhenTheOutcomesAreDurable(t *testing.T) {
	_, s := benchtest.NewSlowStore(t, 1)
	times, _, err := oneBatch(s, []byte(`{"id":"a"}`+"\n"+`{"id":"b"}`+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Record
	addStages(&r, &times)
	benchtest.AfterCommits(t, "M1", time.Duration(r.Value*float64(time.Millisecond)), 2)
	for i, stage := range r.Stages {
		if commits := []int{0, 0, 1, 1}[i]; stage.Millis < report.Millis(time.Duration(commits)*benchtest.SlowCommit)-10 {
			t.Errorf("%s took %v ms, with %d commits", stage.Name, stage.Millis, commits)
		}
	}
}
