package delivery

import (
	"math"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// TestAMachineThatSlowsDownCancelsOutOfPhases has a machine that halves its speed within
// a run, with something in every second phase that takes a tenth.
func TestAMachineThatSlowsDownCancelsOutOfPhases(t *testing.T) {
	const step = 10 * time.Millisecond
	first := time.Unix(1_800_000_000, 0)
	var came sink.Timeline
	came.StepMillis = step.Milliseconds()
	var run phases
	const stepsOfTurn, count = 100, 12
	for i := range count * stepsOfTurn {
		if i%stepsOfTurn == 0 {
			at := first.Add(time.Duration(i)*step + 3*time.Millisecond)
			run.marks = append(run.marks, phaseStart{at: at, cpu: time.Duration(i) * step, commits: float64(i)})
		}
		mails := 1000 * (1 - float64(i)/(2*count*stepsOfTurn))
		if i/stepsOfTurn%2 == 0 {
			mails *= 0.9
		}
		came.Counts = append(came.Counts, int64(mails))
	}
	all := run.within(first.Add(10_500*time.Millisecond), first, came)
	if len(all) != 10 {
		t.Fatalf("%d phases ended in time, want 10", len(all))
	}
	with, without, ratios := compareNeighbours(all)
	if len(ratios) != 4 || math.Abs(with.perSecond()/without.perSecond()-0.9) > 0.002 {
		t.Errorf("%v against %v, ratios %v; want four, and 0.9 of it", with, without, ratios)
	}
	if with.span != 4*time.Second || without.cpu != 8*time.Second || with.commits != 4*stepsOfTurn {
		t.Errorf("with %+v, without %+v", with, without)
	}
}

func TestABroadcastThatIsTooShortForPhasesHasNoComparison(t *testing.T) {
	var run phases
	for i := range 3 {
		run.marks = append(run.marks, phaseStart{at: time.Unix(int64(i), 0)})
	}
	for name, came := range map[string]sink.Timeline{
		"too few phases": {StepMillis: 10, Counts: make([]int64, 10)},
		"no timeline":    {},
	} {
		var r report.Record
		r.Value = 7
		judgePhases(&r, run.within(time.Unix(100, 0), time.Unix(0, 0), came), time.Second)
		if r.Value != 7 || r.Limit != 0 || len(r.Notes) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
