package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// inMemory is the durability of what is matched in process: nothing is kept.
const inMemory = "none"

// A matchGoal is what the plan asks of an experiment with a million and with ten
// million subscriptions.
type matchGoal struct {
	million, tenMillion float64
	unit, beside        string
}

// publish sets what the record is held against.
func (g matchGoal) publish(r *Record, n int) {
	value := g.million
	if n >= 10_000_000 {
		value = g.tenMillion
	}
	r.Published = &Published{value, g.text(value)}
}

func (g matchGoal) text(value float64) string {
	return fmt.Sprintf("goal %s %s%s", figure(value), g.unit, g.beside)
}

// published is the goal at a million, as the list of experiments shows it.
func (g matchGoal) published() Published { return Published{g.million, g.text(g.million)} }

// A matching is an experiment in which a workload is matched, in process.
type matching struct {
	workload      string
	shows         string
	subscriptions int  // at scale 1
	threads       int  // 0: all CPUs
	ids           bool // the rate that counts is that of the ids
	goal          matchGoal
}

func matchings() []matching {
	return []matching{
		{"B1", "alerts on the price of one of 10,000 symbols by Zipf: equality and threshold, ten matches an event of the smallest JSON", 1_000_000, 0, false, matchGoal{2e6, 1e6, "events/s", "; PostgreSQL 463k/s"}},
		{"B1j", "B1 with events of 300 bytes", 1_000_000, 0, false, matchGoal{400e3, 300e3, "events/s", ""}},
		{"B2", "a threshold alone, which one in a hundred has below the event's value", 1_000_000, 0, true, matchGoal{1e9, 1e9, "ids/s", "; PostgreSQL 19M/s"}},
		{"B3", "all subscriptions share NotifyBC's filter, and all match", 1_000_000, 1, true, matchGoal{1e9, 1e9, "ids/s", " (1 ms a million)"}},
		{"B4", "10,000 different contains_ci by Zipf, against titles of twelve words", 1_000_000, 0, false, matchGoal{200e3, 200e3, "events/s", ""}},
		{"B5", "every filter is another one: prices, words with weights, notices in regions", 1_000_000, 0, false, matchGoal{100e3, 30e3, "events/s", ""}},
		{"B6", "3,000,000 filters of eight predicates each over 40 facts, as in advertising", 3_000_000, 1, false, matchGoal{20e3, 20e3, "events/s", " per core; PS-Tree 0.24 ms an event"}},
	}
}

func matchingExperiments() []Experiment {
	var all []Experiment
	for _, m := range matchings() {
		all = append(all, Experiment{m.workload, m.shows, m.goal.published(), m.run})
	}
	return append(all,
		Experiment{"B7", "adds to the index, and when an event meets what was added", Published{1e6, "goal 1,000,000/s rule rows, 100,000/s different filters; seen in 5 ms"}, runAdds},
		Experiment{"B8", "start to ready with price alerts in the store", Published{2000, "goal 2,000 ms at a million, 20,000 ms at ten million"}, runColdStart},
		Experiment{"B9", "heap of a subscription", Published{0, "goal 64 B a rule row, 32 B a shared filter, 500 B a different one"}, runMemory},
		Experiment{"B10", "10,000,000 price alerts in one server: memory, cold start, 100,000 adds/s beside 10,000 events/s",
			Published{1536, "goal 1,536 MiB, start in 20 s, p99 of an event below twice that without adds"}, runStanding})
}

func (m matching) run(l *lab, r *Record) error {
	n := l.size(m.subscriptions, 1000)
	threads := m.threads
	if threads == 0 {
		threads = runtime.NumCPU()
	}
	m.goal.publish(r, n)
	database := r.inProcess()
	r.Unit = m.goal.unit
	r.Params["subscriptions"], r.Params["threads"] = n, threads
	got, err := l.match(r, matchSpec{Workload: m.workload, Subscriptions: n, Threads: threads, Millis: l.matchMillis()})
	if err != nil {
		return err
	}
	rate, bare := got.Events, got.Bare
	r.Value = rate.Events
	r.limit(bare.Events)
	r.P50Millis, r.P99Millis, r.CPUMicros = rate.P50/1000, rate.P99/1000, rate.CPU/1000
	if m.ids {
		r.Value = rate.IDs
		r.limit(bare.IDs)
		r.note("the value counts hits as the product takes them from the index: in order, each with its subscriber, channel and rule")
	}
	r.stage("adding all", time.Duration(got.Filled*float64(time.Second)))
	r.note("%s events/s with %.1f ids each, %s ids/s; %d bytes of JSON; an event p50 %s us, p99 %s us, CPU %s us (that of the limit %s us)", figure(rate.Events), rate.IDs/rate.Events, figure(rate.IDs),
		got.EventSize, figure(rate.P50), figure(rate.P99), figure(rate.CPU/1000), figure(bare.CPU/1000))
	r.note("heap %.0f bytes a subscription; %s added a second, %.0f bytes each as written", got.HeapBytes, figure(float64(n)/got.Filled), got.Conditions)
	r.note("the limit is %s", m.limit())
	r.note("naive: cel-go takes %.0f ns a condition (%s evaluations), which makes %s events/s on all cores if each subscription's is evaluated: extrapolated",
		got.Naive, thousands(int64(got.Sample)), figure(float64(threads)*1e9/got.Naive/float64(n)))
	judged := wrong(got.Wrong)
	if database != "" {
		if err := m.beside(l, r, n, threads, database, &judged); err != nil {
			return err
		}
	}
	return judged.err()
}

// inProcess says that nothing of a run is kept: a database that is named is a peer
// then, and this is what it is.
func (r *Record) inProcess() (database string) {
	r.Durability = inMemory
	database, _ = r.Params["db"].(string)
	delete(r.Params, "db")
	delete(r.Params, "db_settings")
	return database
}

// beside has the database do the same, where it can.
func (m matching) beside(l *lab, r *Record, n, threads int, database string, judged *wrong) error {
	w, err := newWorkload(m.workload, n, l.Seed)
	if err != nil {
		return err
	}
	able, ok := w.(sqlWorkload)
	if !ok {
		return nil
	}
	rate, wrong, err := l.sqlPeer(able, n, threads, time.Duration(l.matchMillis())*time.Millisecond)
	if err != nil {
		return fmt.Errorf("the database beside: %w", err)
	}
	*judged = append(*judged, wrong...)
	batch, _ := able.sqlBatch()
	r.note("%s, index with the ids in it, %d connections, %d events a statement, the ids of an event in one array: %s events/s, %s ids/s",
		database, threads, batch, figure(rate.Events), figure(rate.IDs))
	return nil
}

// limit says what the bare work is.
func (m matching) limit() string {
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

// matchMillis is how long events are matched: 3 s, and less at small scales.
func (l *lab) matchMillis() int { return int(1000 * max(0.15, min(3, 3*l.Scale))) }

// match runs a workload in a process of its own.
func (l *lab) match(r *Record, spec matchSpec) (matchResult, error) {
	spec.Seed = l.Seed
	var result matchResult
	var err error
	if spec.Millis > 0 {
		if spec.Profile, err = l.profile(spec.Workload); err != nil {
			return result, err
		}
	}
	return result, l.inProcess(r, "match", spec, &result)
}

// profile names a file for a CPU profile, "" where none is asked for.
func (l *lab) profile(name string) (string, error) {
	if l.Pprof == "" {
		return "", nil
	}
	return filepath.Join(l.Pprof, fmt.Sprintf("%s-%d.pprof", name, time.Now().UnixMilli())), os.MkdirAll(l.Pprof, 0o750)
}

// inProcess runs a part that answers with one line, and notes what it took, and
// what others took meanwhile.
func (l *lab) inProcess(r *Record, part string, spec, result any) error {
	before, own := readCPUTimes(), ownCPU()
	c, err := l.part(part, spec)
	if err != nil {
		return err
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, result); err != nil {
		return c.failed(err)
	}
	if err := c.wait(); err != nil {
		return err
	}
	r.RSSMiB = max(r.RSSMiB, c.final.peakMiB)
	r.CPUSeconds += c.final.cpu.Seconds()
	r.noteOthers(readCPUTimes().others(before, c.final.cpu+ownCPU()-own))
	return nil
}
