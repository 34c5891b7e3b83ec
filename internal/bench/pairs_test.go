package bench

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// pairsOf makes pairs of a value.
func pairsOf(limit float64, values ...[2]float64) (all []pair) {
	record := func(v float64) report.Record {
		r := report.Record{Unit: "mails/s", Value: v, CPUMicros: 1e6 / v}
		r.SetLimit(limit)
		return r
	}
	for _, v := range values {
		all = append(all, pair{record(v[0]), record(v[1])})
	}
	return all
}

func TestAComparisonIsTheMedianOfThePairwiseRatios(t *testing.T) {
	noise := pairsOf(100, [2]float64{50, 51}, [2]float64{40, 40}, [2]float64{60, 59})
	for name, c := range map[string]struct {
		changes []pair
		want    []string
	}{
		"equal":  {pairsOf(100, [2]float64{50, 50}, [2]float64{40, 44}, [2]float64{60, 54}), []string{"1.000", "0.900 1.000 1.100", "0.983 to 1.020", "within noise"}},
		"slower": {pairsOf(100, [2]float64{50, 40}, [2]float64{40, 32}, [2]float64{60, 48}), []string{"0.800", "worse"}},
		"faster": {pairsOf(100, [2]float64{50, 60}, [2]float64{40, 48}, [2]float64{60, 30}), []string{"1.200", "better"}},
	} {
		figures := comparedFigures(&c.changes[0].before)
		if len(figures) != 2 || figures[0].name != "value/limit" || figures[1].name != "CPU us/item" {
			t.Fatalf("%s: %+v", name, figures)
		}
		row := figures[0].row("N1", c.changes, noise)
		for _, part := range c.want {
			if !strings.Contains(row, part) {
				t.Errorf("%s: no %q in %q", name, part, row)
			}
		}
	}
}

func TestLessCPUIsBetterAndSoIsLessTime(t *testing.T) {
	noise := []float64{0.98, 1, 1.03}
	for _, c := range []struct {
		lower bool
		ratio float64
		want  string
	}{
		{false, 1.2, "better"}, {false, 0.8, "worse"}, {true, 1.2, "worse"}, {true, 0.8, "better"},
		{false, 1.02, "within noise"}, {true, 0.972, "within noise"}, // 1/1.03
	} {
		if got := (compared{lower: c.lower}).result(c.ratio, noise); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	for unit, want := range map[string]bool{"ms": true, "MiB": true, "mails/s": false, "us CPU/event": true, "s": true} {
		if lessIsBetter(unit) != want {
			t.Errorf("%s: less is better: %v", unit, !want)
		}
	}
}

func TestAComparisonNeedsAnOlderBinary(t *testing.T) {
	o := PairOptions{Options: harness.Options{Scale: 1, Runs: 1, Durability: "fsync", Sink: "builtin"}, Pairs: 5, Old: t.TempDir()}
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "--old") {
		t.Errorf("got %v", err)
	}
}
