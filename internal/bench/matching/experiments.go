package matching

import (
	"fmt"
	"runtime"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// A matchGoal is the goal of an experiment with a million and with ten million
// subscriptions.
type matchGoal struct {
	million, tenMillion float64
	unit, note          string
}

// publish sets the goal as the published figure of the record.
func (g matchGoal) publish(r *report.Record, n int) {
	value := g.million
	if n >= 10_000_000 {
		value = g.tenMillion
	}
	r.Published = &report.Published{Value: value, Text: g.text(value)}
}

func (g matchGoal) text(value float64) string {
	return fmt.Sprintf("goal %s %s%s", report.Figure(value), g.unit, g.note)
}

// published returns the goal for a million subscriptions, for the list of experiments.
func (g matchGoal) published() report.Published {
	return report.Published{Value: g.million, Text: g.text(g.million)}
}

// An indexExperiment measures the index alone with a workload.
type indexExperiment struct {
	workload      string
	shows         string
	subscriptions int  // at scale 1
	threads       int  // 0: all CPUs
	ids           bool // the value is the rate of the ids
	goal          matchGoal
}

func indexExperiments() []indexExperiment {
	return []indexExperiment{
		{"B1", "price alerts on 10,000 symbols by Zipf: equality and threshold, ten matches for an event of the smallest JSON", 1_000_000, 0, false, matchGoal{2e6, 1e6, "events/s", "; PostgreSQL 463k/s"}},
		{"B1j", "B1 with events of 300 bytes", 1_000_000, 0, false, matchGoal{400e3, 300e3, "events/s", ""}},
		{"B2", "a threshold alone, which 1 % of the subscriptions have below the value of the event", 1_000_000, 0, true, matchGoal{1e9, 1e9, "ids/s", "; PostgreSQL 19M/s"}},
		{"B3", "all subscriptions share NotifyBC's filter, and all match", 1_000_000, 1, true, matchGoal{1e9, 1e9, "ids/s", " (1 ms for a million)"}},
		{"B4", "10,000 different contains_ci by Zipf, titles of twelve words", 1_000_000, 0, false, matchGoal{200e3, 200e3, "events/s", ""}},
		{"B5", "every filter is different: prices, words with weights, notices in regions", 1_000_000, 0, false, matchGoal{100e3, 30e3, "events/s", ""}},
		{"B6", "3,000,000 filters of eight predicates each over 40 fields, as in advertising", 3_000_000, 1, false, matchGoal{20e3, 20e3, "events/s", " per core; PS-Tree 0.24 ms for an event"}},
	}
}

// Experiments lists the experiments of the suite matching.
func Experiments() []harness.Experiment {
	var all []harness.Experiment
	for _, m := range indexExperiments() {
		all = append(all, harness.Experiment{ID: m.workload, Run: m.run, Published: m.goal.published(), Shows: m.shows})
	}
	return append(all,
		harness.Experiment{ID: "B7", Run: runAdds, Published: report.Published{Value: 1e6, Text: "goal 1,000,000/s rule rows, 100,000/s different filters; visible within 5 ms"},
			Shows: "adding subscriptions to the index, and the time until an event matches a new one"},
		harness.Experiment{ID: "B8", Run: runColdStart, Published: report.Published{Value: 2000, Text: "goal 2,000 ms at a million, 20,000 ms at ten million"},
			Shows: "time from start to ready with price alerts in the store"},
		harness.Experiment{ID: "B9", Run: runMemory, Published: report.Published{Text: "goal 64 B for a rule row, 32 B for a shared filter, 500 B for a different one"},
			Shows: "heap memory of a subscription"},
		harness.Experiment{ID: "B10", Run: runLargeIndex, Published: report.Published{Value: 1536, Text: "goal 1,536 MiB, start in 20 s, p99 of an event below twice that without adds"},
			Shows: "10,000,000 price alerts in one server: memory, cold start, and 100,000 adds/s together with 10,000 events/s"})
}

func (m indexExperiment) run(l *harness.Env, r *report.Record) error {
	n := l.Size(m.subscriptions, 1000)
	threads := m.threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	m.goal.publish(r, n)
	database := r.MarkInMemory()
	r.Unit = m.goal.unit
	r.Params["subscriptions"], r.Params["threads"] = n, threads
	got, err := runMatch(l, r, matchSpec{Workload: m.workload, Subscriptions: n, Threads: threads, Millis: l.MeasureMillis()})
	if err != nil {
		return err
	}
	rate, bare := got.Events, got.Bare
	r.Value = rate.Events
	r.SetLimit(bare.Events)
	r.P50Millis, r.P99Millis, r.CPUMicros = rate.P50/1000, rate.P99/1000, rate.CPU/1000
	if m.ids {
		r.Value = rate.IDs
		r.SetLimit(bare.IDs)
		r.Note("the value counts hits as the product takes them from the index: in order, each with its subscriber, channel and rule")
	}
	r.AddStage("adding all", time.Duration(got.Filled*float64(time.Second)))
	r.Note("%s events/s with %.1f ids each, %s ids/s; %d bytes of JSON; an event p50 %s us, p99 %s us, CPU %s us (that of the limit %s us)", report.Figure(rate.Events), rate.IDs/rate.Events, report.Figure(rate.IDs),
		got.EventSize, report.Figure(rate.P50), report.Figure(rate.P99), report.Figure(rate.CPU/1000), report.Figure(bare.CPU/1000))
	r.Note("heap %.0f bytes a subscription; %s subscriptions added in a second, %.0f bytes of text each", got.HeapBytes, report.Figure(float64(n)/got.Filled), got.Conditions)
	r.Note("the limit is %s", m.limitText())
	r.Note("for comparison: cel-go takes %.0f ns for a condition (%s evaluations), extrapolated to all subscriptions and cores %s events/s",
		got.Naive, report.Thousands(int64(got.Sample)), report.Figure(float64(threads)*1e9/got.Naive/float64(n)))
	judged := report.Checks(got.Wrong)
	if database != "" {
		if err := m.compareWithPostgreSQL(l, r, n, threads, database, &judged); err != nil {
			return err
		}
	}
	return judged.Err()
}

// compareWithPostgreSQL measures the same workload in PostgreSQL, if PostgreSQL can do
// it.
func (m indexExperiment) compareWithPostgreSQL(l *harness.Env, r *report.Record, n, threads int, database string, judged *report.Checks) error {
	w, err := newWorkload(m.workload, n, l.Seed)
	if err != nil {
		return err
	}
	able, ok := w.(sqlWorkload)
	if !ok {
		return nil
	}
	rate, wrong, err := sqlPeer(l, able, n, threads, time.Duration(l.MeasureMillis())*time.Millisecond)
	if err != nil {
		return fmt.Errorf("compare with the database: %w", err)
	}
	*judged = append(*judged, wrong...)
	batch, _ := able.sqlBatch()
	r.Note("%s with a covering index, %d connections, %d events in a statement, the ids of an event in one array: %s events/s, %s ids/s",
		database, threads, batch, report.Figure(rate.Events), report.Figure(rate.IDs))
	return nil
}

// limitText describes the limit of the workload.
func (m indexExperiment) limitText() string {
	switch m.workload {
	case "B1":
		return "a binary search in the symbol's thresholds and a copy of its ids: no JSON, no conditions"
	case "B1j":
		return "one look at each byte, a binary search in the symbol's thresholds and a copy of its ids"
	case "B2":
		return "a binary search in one ordered slice and a copy of its ids"
	case "B3":
		return "a copy of all ids"
	case "B4":
		return "folding the text, one look at a table of 64 KiB for each of its bytes, and a copy of the word's ids"
	}
	return "one look at each byte and, for each member of the event, at one place of a table with a word for every subscription"
}

// runMatch runs a workload in a process of its own.
func runMatch(l *harness.Env, r *report.Record, spec matchSpec) (matchResult, error) {
	spec.Seed = l.Seed
	var result matchResult
	var err error
	if spec.Millis > 0 {
		if spec.Profile, err = l.Profile(spec.Workload); err != nil {
			return result, err
		}
	}
	return result, l.RunPart(r, "match", spec, &result)
}
