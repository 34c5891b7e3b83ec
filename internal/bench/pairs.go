package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// PairOptions are the options of a comparison of two binaries.
type PairOptions struct {
	harness.Options
	Old   string // binary before the change; Options.Binary is the one after it
	Pairs int    // of the old and the new binary, and as many of the old one with itself
}

// Validate refuses options that make no sense.
func (o *PairOptions) Validate() error {
	if o.Pairs < 1 {
		return harness.InvalidFlag("pairs", "must be at least 1", "use 5 to compare two binaries")
	}
	if info, err := os.Stat(o.Old); err != nil || !info.Mode().IsRegular() {
		return harness.InvalidFlag("old", fmt.Sprintf("%q is not a file", o.Old), "pass the fanfare binary that was built before the change")
	}
	return o.Options.Validate()
}

// A pair is two runs, one directly after the other.
type pair struct{ before, after report.Record }

// A compared says which figure of two records is compared.
type compared struct {
	name   string
	figure func(r *report.Record) float64
	lower  bool // less is better
}

// comparedFigures returns the figures that are compared: the value, or value by limit if
// a limit was measured, since the speed of the machine cancels out; the CPU time of an
// item; and the latency.
func comparedFigures(r *report.Record) []compared {
	first := compared{"value", func(r *report.Record) float64 { return r.Value }, lessIsBetter(r.Unit)}
	if r.Ratio > 0 {
		first = compared{"value/limit", func(r *report.Record) float64 { return r.Ratio }, false}
	}
	all := []compared{first}
	if r.CPUMicros > 0 {
		all = append(all, compared{"CPU us/item", func(r *report.Record) float64 { return r.CPUMicros }, true})
	} else if r.CPUSeconds > 0 {
		all = append(all, compared{"CPU s", func(r *report.Record) float64 { return r.CPUSeconds }, true})
	}
	if r.P99Millis > 0 && r.P99Millis != r.Value {
		all = append(all, compared{"p99 ms", func(r *report.Record) float64 { return r.P99Millis }, true})
	}
	return all
}

// lessIsBetter tells whether a smaller value is better, by its unit: this is so for
// times and sizes, but not for rates.
func lessIsBetter(unit string) bool {
	return !strings.Contains(unit, "/s")
}

// RunPairs compares two binaries. For each experiment it runs the old and the new binary
// in alternating order. Between these pairs it runs the old binary twice, which shows
// how much a figure changes with the machine alone. The load, the sink and the raw
// limits always come from the new binary.
func RunPairs(ctx context.Context, o PairOptions, ids []string) error {
	chosen, needDB, err := choose(ids, o.DB != "")
	if err != nil {
		return err
	}
	sayNeedDB(o.Output, needDB)
	o.Start()
	fmt.Fprintf(o.Output, "machine: %s\nscale %g, seed %d, durability %s\nold: %s\nnew: %s\n", harness.Machine(), o.Scale, o.Seed, o.Durability, o.Old, o.Binary)
	var failed []error
	table := tabwriter.NewWriter(o.Output, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "id\tfigure\told\tnew\tnew/old\tpairs\tnoise (old/old)\tresult\t\n")
	for _, e := range chosen {
		changes, noise, wrongs, err := o.pairsOf(ctx, e)
		if err != nil {
			return err
		}
		failed = append(failed, wrongs...)
		for _, f := range comparedFigures(&changes[0].before) {
			fmt.Fprintln(table, f.row(e.ID, changes, noise))
		}
	}
	fmt.Fprintln(o.Output)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(o.Output, "new/old is the median of the pairwise ratios. Within noise: it is no further from 1 than a ratio of the old binary with itself, in either direction.")
	return errors.Join(failed...)
}

// pairsOf runs all pairs of an experiment.
func (o *PairOptions) pairsOf(ctx context.Context, e harness.Experiment) (changes, noise []pair, wrongs []error, err error) {
	run := func(number int, name, binary string) (*report.Record, error) {
		fmt.Fprintf(o.Output, "%s, pair %d of %d: %s\n", e.ID, number, o.Pairs, name)
		options := o.Options
		options.Tested, options.Version, options.Output = binary, name, io.Discard
		options.Terminal = false
		r, err := runOnce(ctx, options, e)
		var w *report.CheckError
		if errors.As(err, &w) {
			fmt.Fprintf(o.Output, "  WRONG: %v\n", err)
			wrongs = append(wrongs, fmt.Errorf("%s, %s: %w", e.ID, name, err))
			err = nil
		}
		if err == nil {
			fmt.Fprintf(o.Output, "  %s %s\n", report.Figure(r.Value), r.Unit)
		}
		return r, err
	}
	two := func(number int, firstName, first, secondName, second string) (pair, error) {
		a, err := run(number, firstName, first)
		if err != nil {
			return pair{}, err
		}
		b, err := run(number, secondName, second)
		if err != nil {
			return pair{}, err
		}
		return pair{*a, *b}, nil
	}
	for i := range o.Pairs {
		var p pair
		if i%2 == 0 {
			p, err = two(i+1, "old", o.Old, "new", o.Binary)
		} else {
			p, err = two(i+1, "new", o.Binary, "old", o.Old)
			p.before, p.after = p.after, p.before
		}
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", e.ID, err)
		}
		changes = append(changes, p)
		if p, err = two(i+1, "old, for the noise", o.Old, "old again", o.Old); err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", e.ID, err)
		}
		noise = append(noise, p)
	}
	return changes, noise, wrongs, nil
}

// ratios returns the pairwise ratios of a figure, sorted.
func (f compared) ratios(pairs []pair) []float64 {
	var all []float64
	for i := range pairs {
		if before := f.figure(&pairs[i].before); before > 0 {
			all = append(all, f.figure(&pairs[i].after)/before)
		}
	}
	slices.Sort(all)
	return all
}

// row writes the line of the table for one figure.
func (f compared) row(id string, changes, noise []pair) string {
	var before, after []float64
	for i := range changes {
		before, after = append(before, f.figure(&changes[i].before)), append(after, f.figure(&changes[i].after))
	}
	ratios, alone := f.ratios(changes), f.ratios(noise)
	if len(ratios) == 0 || len(alone) == 0 {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t-\t-\t-\tnot measured\t", id, f.name, report.Figure(report.MedianOf(before)), report.Figure(report.MedianOf(after)))
	}
	each := make([]string, len(ratios))
	for i, r := range ratios {
		each[i] = fmt.Sprintf("%.3f", r)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%.3f\t%s\t%.3f to %.3f\t%s\t", id, f.name, report.Figure(report.MedianOf(before)), report.Figure(report.MedianOf(after)),
		report.MedianOf(ratios), strings.Join(each, " "), alone[0], alone[len(alone)-1], f.result(report.MedianOf(ratios), alone))
}

// result compares a change with the noise. Both runs of a noise pair use the same
// binary, so that its ratio counts in both directions.
func (f compared) result(ratio float64, noise []float64) string {
	least, most := noise[0], noise[len(noise)-1]
	least, most = min(least, 1/most), max(most, 1/least)
	switch {
	case ratio >= least && ratio <= most:
		return "within noise"
	case (ratio < least) == f.lower:
		return "better"
	}
	return "worse"
}
