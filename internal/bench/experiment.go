package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
)

// An Experiment is one that can be run.
type Experiment struct {
	ID        string
	Shows     string
	Published Published
	run       func(l *lab, r *Record) error
}

// Experiments lists them all, in the order in which all runs them.
func Experiments() []Experiment {
	return []Experiment{
		{"N1", "1,000,000 subscriptions with NotifyBC's filter, 1 KB personal mails, 50 connections, one broadcast", Published{233, "233/s, 71.5 min (NotifyBC, 2 x 1 core)"}, runBroadcast},
		{"N1b", "N1 with 10,000 different filters, three overlapping subscriptions for every tenth person, 2 % answered 4xx once, 1 % 5xx", Published{}, runMixed},
		{"N4", "the same subscriptions by single POSTs, 100 at once (the shape of NotifyBC's script), and in bulk", Published{}, runScript},
		{"N5", "raw SMTP sender to the same sink: ready bytes, same size, same grouping (the limit of N1)", Published{}, runRaw},
		{"U1", "one urgent event to one subscriber on an idle server, 2,000 times: p99 from the 202 to the bytes at the sink", Published{}, runUrgent},
		{"U2", "POST /v1/messages?wait=5s to one person on an idle server, 2,000 times: p99 from the request to the bytes at the sink", Published{}, runMessages},
		{"I1", "bulk import of 1,000,000 subscriptions into an empty store", Published{}, runImport},
		{"I2", "bulk import of 1,000,000 subscriptions into a store of 10,000,000 (--base)", Published{}, runImportMore},
		{"I3", "single POSTs of subscriptions from 50 connections", Published{}, runPosts},
		{"I4", "single POSTs of events from 50 connections", Published{}, runEvents},
		{"S1", "subscribers: load 100,000 into an empty server, add, update and delete 10,000; 1 and 50 connections", Published{Text: "more threads +50 to +100 %, update and delete slower than add (SSNS, shape)"}, runSubscribers},
		{"S2", "100,000 subscriptions of 20, 200 and 1,000 characters", Published{Text: "falls with the size (SSNS, shape)"}, runSubscriptionSizes},
		{"S3", "100,000 subscriptions of 200 characters, event-driven (scheduled ones do not exist yet)", Published{Text: "event-driven and scheduled nearly equal (SSNS, shape)"}, runSubscriptionKinds},
		{"E5", "events over the API: 25 to 5,000 characters, 10,000 in a batch", Published{Text: "hundreds/s (SSNS, API provider)"}, runEventSizes},
		{"E6", "events over the API: batches of 1 to 10,000, 250 characters", Published{Text: "rises with the batch (SSNS, shape)"}, runEventBatches},
		{"M1", "10,000 subscribers with a subscription each, one real batch: how long it is in each stage", Published{}, runBatchStages},
		{"H1", "ten broadcasts to 1,000,000 people, then 1,000 random histories and traces: p99 of a history", Published{}, runBroadcastHistory},
		{"H2", "10,000,000 events to one person each, then 1,000 random histories and traces: p99 of a history", Published{}, runSingleHistory},
		{"R1", "start to ready with 1,000,000 subscriptions; memory and CPU at rest", Published{}, runRest},
	}
}

// A Wrong is what no machine excuses: mails lost or sent twice, a trace that
// does not agree.
type Wrong struct{ What []string }

func (w *Wrong) Error() string { return strings.Join(w.What, "; ") }

// wrong collects what is Wrong in a run.
type wrong []string

func (w *wrong) unless(ok bool, format string, args ...any) {
	if !ok {
		*w = append(*w, fmt.Sprintf(format, args...))
	}
}

func (w wrong) err() error {
	if len(w) == 0 {
		return nil
	}
	return &Wrong{w}
}

// Run runs the experiments with these ids; a suite or "all" stands for
// several. It goes on
// after a Wrong, and returns all of them in the end.
func Run(ctx context.Context, o Options, ids []string) error {
	chosen, err := choose(ids)
	if err != nil {
		return err
	}
	sayMissing(o.Output, ids)
	if len(chosen) == 0 {
		return nil
	}
	fmt.Fprintf(o.Output, "machine: %s\nscale %g, seed %d, durability %s, sink %s", machine(), o.Scale, o.Seed, o.Durability, o.Sink)
	if o.TLS {
		fmt.Fprint(o.Output, " with STARTTLS")
	}
	fmt.Fprintln(o.Output)
	var failed []error
	var medians []Record
	for _, e := range chosen {
		fmt.Fprintf(o.Output, "\n%s: %s\n", e.ID, e.Shows)
		var runs []Record
		for i := range o.Runs {
			if o.Runs > 1 {
				fmt.Fprintf(o.Output, "  run %d of %d\n", i+1, o.Runs)
			}
			r, err := runOnce(ctx, o, e)
			if r != nil {
				writeRecord(o.Output, r)
				runs = append(runs, *r)
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s: %w", e.ID, ctx.Err()) // what the children say about it does not matter
			}
			var w *Wrong
			if err != nil && !errors.As(err, &w) {
				return fmt.Errorf("%s: %w", e.ID, err)
			}
			if err != nil {
				fmt.Fprintf(o.Output, "  WRONG: %v\n", err)
				failed = append(failed, fmt.Errorf("%s: %w", e.ID, err))
			}
		}
		middle, spread := median(runs)
		if o.Runs > 1 {
			fmt.Fprintf(o.Output, "  median of %d: %s %s, spread %.1f %%\n", o.Runs, figure(middle.Value), middle.Unit, 100*spread)
		}
		medians = append(medians, middle)
	}
	fmt.Fprintln(o.Output)
	writeTable(o.Output, medians)
	return errors.Join(failed...)
}

// runOnce returns a record also with a Wrong.
func runOnce(ctx context.Context, o Options, e Experiment) (*Record, error) {
	runtime.GC() // what the run before left behind is not this one's
	l, err := newLab(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &Record{ID: e.ID, Params: map[string]any{"scale": o.Scale, "seed": o.Seed}, Durability: o.Durability, At: time.Now().UTC(), Machine: machine()}
	if e.Published.Text != "" {
		r.Published = &e.Published
	}
	err = e.run(l, r)
	var w *Wrong
	if err != nil && !errors.As(err, &w) {
		return nil, errors.Join(err, l.close())
	}
	if o.Out != "" {
		err = errors.Join(err, r.appendTo(o.Out))
	}
	return r, errors.Join(err, l.close())
}
