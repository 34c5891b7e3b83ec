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
	// The last two stages meet at a poll, which may come late: together they have both commits.
	generate, deliver := r.Stages[2].Millis, r.Stages[3].Millis
	benchtest.AfterCommits(t, r.Stages[2].Name, time.Duration(generate*float64(time.Millisecond)), 1)
	benchtest.AfterCommits(t, r.Stages[2].Name+" and "+r.Stages[3].Name, time.Duration((generate+deliver)*float64(time.Millisecond)), 2)
}
