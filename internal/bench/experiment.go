package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
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
		{"N5", "raw SMTP sender to the same sink: ready bytes, same size, same grouping (the limit of N1)", Published{}, runRaw},
		{"U1", "one urgent event to one subscriber on an idle server, 2,000 times: p99 from the 202 to the bytes at the sink", Published{}, runUrgent},
		{"U2", "POST /v1/messages?wait=5s to one person on an idle server, 2,000 times: p99 from the request to the bytes at the sink", Published{}, runMessages},
		{"I1", "bulk import of 1,000,000 subscriptions into an empty store", Published{}, runImport},
		{"I2", "bulk import of 1,000,000 subscriptions into a store of 10,000,000 (--base)", Published{}, runImportMore},
		{"I3", "single POSTs of subscriptions from 50 connections", Published{}, runPosts},
		{"I4", "single POSTs of events from 50 connections", Published{}, runEvents},
		{"H1", "ten broadcasts to 1,000,000 people, then 1,000 random histories and traces: p99 of a history", Published{}, runBroadcastHistory},
		{"H2", "10,000,000 events to one person each, then 1,000 random histories and traces: p99 of a history", Published{}, runSingleHistory},
		{"R1", "start to ready with 1,000,000 subscriptions; memory and CPU at rest", Published{}, runRest},
	}
}

// Missing lists the ids of the plan that cannot run yet, with what they wait for.
func Missing() map[string]string {
	later := map[string]string{}
	for why, ids := range map[string]string{
		"more than one node":                                "N2 N3 D6 P2",
		"their script of single POSTs (I3 is close)":        "N4",
		"windows, digests and other providers and channels": "S1 S2 S3 E1 E2 E3 E4 E5 E6 G1 G2 D1 D2 D3 D4 D5 C1 C2 M1 P1",
		"provider APIs and digests":                         "L1 L2 L3 L4 L5 L6 L7 L8 L9 L10",
		"sessions and workers":                              "T1 T2 T3",
		"inbound mail and mailboxes":                        "J1 J2 J3 J4 J5",
	} {
		for id := range strings.FieldsSeq(ids) {
			later[id] = why
		}
	}
	return later
}

// suites are the names under which related experiments run together.
func suites() map[string][]string {
	return map[string][]string{
		"notifybc": {"N1", "N1b", "N5"},
		"import":   {"I1", "I2", "I3", "I4"},
		"history":  {"H1", "H2"},
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

func choose(ids []string) ([]Experiment, error) {
	all := Experiments()
	var chosen []Experiment
	for _, id := range ids {
		if strings.EqualFold(id, "all") {
			chosen = append(chosen, all...)
			continue
		}
		if suite, ok := suites()[strings.ToLower(id)]; ok {
			more, err := choose(suite)
			if err != nil {
				return nil, err
			}
			chosen = append(chosen, more...)
			continue
		}
		if why, missing := Missing()[strings.ToUpper(id)]; missing {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("experiment %s cannot run yet: it needs %s", id, why), Hint: "fanfare bench list shows those that can"}
		}
		i := slices.IndexFunc(all, func(e Experiment) bool { return strings.EqualFold(e.ID, id) })
		if i < 0 {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("no experiment %q", id), Hint: "fanfare bench list shows them"}
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
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
