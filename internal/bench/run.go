package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// Run runs the experiments with these ids. An id may also be the name of a suite, or
// all. Run goes on after a CheckError and returns all of them in the end.
func Run(ctx context.Context, o harness.Options, ids []string) error {
	chosen, needDB, err := choose(ids, o.DB != "")
	if err != nil {
		return err
	}
	sayMissing(o.Output, ids)
	sayNeedDB(o.Output, needDB)
	if len(chosen) == 0 {
		return nil
	}
	fmt.Fprintf(o.Output, "machine: %s\nscale %g, seed %d, durability %s, sink %s", harness.Machine(), o.Scale, o.Seed, o.Durability, o.Sink)
	if o.TLS {
		fmt.Fprint(o.Output, " with STARTTLS")
	}
	fmt.Fprintln(o.Output)
	var failed []error
	var medians []report.Record
	o.Start()
	for _, e := range chosen {
		fmt.Fprintf(o.Output, "\n%s: %s\n", e.ID, e.Shows)
		var runs []report.Record
		for i := range o.Runs {
			if o.Runs > 1 {
				fmt.Fprintf(o.Output, "  run %d of %d\n", i+1, o.Runs)
			}
			r, err := runOnce(ctx, o, e)
			if r != nil {
				report.WriteRecord(o.Output, r)
				runs = append(runs, *r)
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s: %w", e.ID, ctx.Err()) // errors of the processes follow from it
			}
			var w *report.CheckError
			if err != nil && !errors.As(err, &w) {
				return fmt.Errorf("%s: %w", e.ID, err)
			}
			if err != nil {
				fmt.Fprintf(o.Output, "  WRONG: %v\n", err)
				failed = append(failed, fmt.Errorf("%s: %w", e.ID, err))
			}
		}
		middle, spread := report.Median(runs)
		if o.Runs > 1 {
			fmt.Fprintf(o.Output, "  median of %d: %s %s, spread %.1f %%\n", o.Runs, report.Figure(middle.Value), middle.Unit, 100*spread)
		}
		medians = append(medians, middle)
	}
	fmt.Fprintln(o.Output)
	report.WriteTable(o.Output, medians)
	return errors.Join(failed...)
}

// runOnce runs an experiment once. It returns a record also with a CheckError.
func runOnce(ctx context.Context, o harness.Options, e harness.Experiment) (*report.Record, error) {
	runtime.GC() // memory of the run before must not count
	l, err := harness.NewEnv(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &report.Record{ID: e.ID, Params: map[string]any{"scale": o.Scale, "seed": o.Seed}, Durability: o.Durability, At: time.Now().UTC(), Call: o.Call, Machine: harness.Machine(), Version: o.Version, Goals: goalsAt(e.ID, o.Scale)}
	if e.Published.Text != "" {
		r.Published = &e.Published
	}
	if err := l.Describe(r); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	before := harness.ReadCPUTimes()
	err = e.Run(l, r)
	r.Steal = harness.ReadCPUTimes().Stolen(before)
	var w *report.CheckError
	if err != nil && !errors.As(err, &w) {
		return nil, errors.Join(err, l.Close())
	}
	if o.Out != "" {
		err = errors.Join(err, r.AppendTo(o.Out))
	}
	return r, errors.Join(err, l.Close())
}
