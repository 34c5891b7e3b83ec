package matching

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/condition"
)

// runHere runs a part in this process and reads its answer.
func runHere[S any](t *testing.T, part func(context.Context, S, io.Reader, *json.Encoder) error, spec S, result any) {
	t.Helper()
	var out bytes.Buffer
	if err := part(t.Context(), spec, strings.NewReader(""), json.NewEncoder(&out)); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		t.Fatal(err)
	}
}

func TestEachWorkloadAgreesWithCELAndWithItsLimit(t *testing.T) {
	for _, m := range indexExperiments() {
		t.Run(m.workload, func(t *testing.T) {
			var got matchResult
			runHere(t, MatchPart, matchSpec{Workload: m.workload, Subscriptions: 1500, Seed: 1, Threads: 2, Millis: 10}, &got)
			if len(got.Wrong) > 0 || got.Events.Events <= 0 || got.Bare.Events <= 0 || got.Naive <= 0 || got.Sample != 100_000 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// The comparisons must be able to fail.
func TestAMissingMatchIsFound(t *testing.T) {
	w := newPriceAlerts(2000, 1, false)
	x := condition.New()
	if err := x.Define(matchKey, w.definition()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fillIndex(x, w, 0, 2000); err != nil {
		t.Fatal(err)
	}
	events := make([][]byte, harness.DistinctEvents)
	for i := range events {
		events[i] = w.event(i)
	}
	hits, err := x.Match(matchKey, condition.Event{Data: events[0]}, nil)
	if err != nil || len(hits) == 0 {
		t.Fatal(len(hits), err)
	}
	for _, h := range hits {
		x.Remove(matchKey, h.Place)
	}
	var result matchResult
	if err := (matchSpec{Threads: 1, Millis: 1}).measureBare(x, w, events, &result); err != nil || len(result.Wrong) == 0 {
		t.Errorf("against slices: %v %v", result.Wrong, err)
	}
	result = matchResult{}
	if err := checkAgainstCEL(x, w, 2000, events, &result); err != nil || len(result.Wrong) == 0 {
		t.Errorf("against cel-go: %v %v", result.Wrong, err)
	}
}

func TestAnAddedSubscriptionMatchesAtOnce(t *testing.T) {
	for _, workload := range []string{"B1", "B5"} {
		var got addsResult
		runHere(t, AddsPart, addsSpec{Workload: workload, Subscriptions: 2000, Single: 50, Seed: 1}, &got)
		if len(got.Wrong) > 0 || got.Groups <= 0 || got.Single <= 0 || got.Bare <= 0 || got.P99 <= 0 {
			t.Errorf("%s: %+v", workload, got)
		}
	}
}

func TestNoTwoFiltersOfTheDifferentOnesAreEqual(t *testing.T) {
	const n = 60_000
	w, seen := newDistinctFilters(n, 1), map[string]bool{}
	for i := range n {
		filter, _, _ := w.condition(i)
		seen[filter] = true
	}
	if len(seen) != n {
		t.Errorf("%d different ones of %d", len(seen), n)
	}
}

func TestAQuoteMatchesTenOnAverage(t *testing.T) {
	const n = 100_000
	q := newPriceAlerts(n, 1, false)
	bare, total := q.bare(2000), 0
	for i := range 2000 {
		total += len(bare.answer(i, nil, nil))
	}
	if mean := float64(total) / 2000; mean < 8 || mean > 12 {
		t.Errorf("%.1f on average", mean)
	}
}

func TestALongEventHasThreeHundredBytes(t *testing.T) {
	q := newPriceAlerts(1_000_000, 1, true)
	for i := range 1000 {
		if data := q.event(i); len(data) != longEventBytes || !json.Valid(data) {
			t.Fatalf("%d bytes: %s", len(data), data)
		}
	}
}

func TestTheLimitFindsTheThresholdsThatAreReached(t *testing.T) {
	o := newOrdered(2, 6, func(i int) (int, float64) { return i % 2, float64(6 - i) })
	if got := o.upTo(0, 4, nil); !slices.Equal(got, []uint32{uint32(placeOf(4)), uint32(placeOf(2))}) {
		t.Errorf("got %v", got)
	}
	if got := o.upTo(1, 0.5, nil); len(got) != 0 {
		t.Errorf("below all: %v", got)
	}
}
