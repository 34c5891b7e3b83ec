package bench

import (
	"testing"
	"time"
)

func TestTheClockOfABatchStopsWhenTheOutcomesAreDurable(t *testing.T) {
	_, s := newSlowStore(t, 1)
	times, _, err := s.oneBatch([]byte(`{"id":"a"}`+"\n"+`{"id":"b"}`+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	r.stages(&times)
	afterCommits(t, "M1", time.Duration(r.Value*float64(time.Millisecond)), 2)
	for i, stage := range r.Stages {
		if commits := []int{0, 0, 1, 1}[i]; stage.Millis < millis(time.Duration(commits)*slowCommit)-10 {
			t.Errorf("%s took %v ms, with %d commits", stage.Name, stage.Millis, commits)
		}
	}
}
