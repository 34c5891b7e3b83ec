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
	return append([]Experiment{
		{"N1", "1,000,000 subscriptions with NotifyBC's filter, 1 KB personal mails, 50 connections, one broadcast", Published{233, "233/s, 71.5 min (NotifyBC, 2 x 1 core)"}, runBroadcast},
		{"N1b", "N1 with 10,000 different filters, three overlapping subscriptions for every tenth person, 2 % answered 4xx once, 1 % 5xx", Published{}, runMixed},
		{"N1d", "N1 with signed mails (DKIM): plain, with a key of Ed25519 and, a tenth as many, with one of RSA-2048", Published{}, runSigned},
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
		{"S3", "100,000 subscriptions of 200 characters, event-driven and scheduled", Published{Text: "event-driven and scheduled nearly equal (SSNS, shape)"}, runSubscriptionKinds},
		{"E5", "events over the API: 25 to 5,000 characters, 10,000 in a batch", Published{Text: "hundreds/s (SSNS, API provider)"}, runEventSizes},
		{"E6", "events over the API: batches of 1 to 10,000, 250 characters", Published{Text: "rises with the batch (SSNS, shape)"}, runEventBatches},
		{"G1", "10,000 notifications in 1 to 32 batches, and a million: the rate until they are durable", Published{1100, "1,100 -> 950/s (SSNS); goal 2,000,000/s"}, runGenerationBatches},
		{"G2", "eight rules for 2,500 people each, by threads of the server", Published{Text: "best at one to two times the CPUs (SSNS, shape)"}, runGenerationThreads},
		{"C1", "stock case: a quote for each of 1,000 symbols by the minute, 200,000 people with five alerts each by four rules, mails", Published{700, "700/s with 3 distributors, < 2 min (SSNS, HTTP)"}, runMinutes},
		{"C2", "C1 as fast as it goes: quotes/s into manifests, and the time of a quote at half of the demanded 20,000/s", Published{20_000, "goal 20,000/s, p99 20 ms at half of it"}, runTicks},
		{"M1", "10,000 subscribers with a subscription each, one real batch: how long it is in each stage", Published{}, runBatchStages},
		{"D1", "formatting messages of 25 to 2,000 characters, thrown away, one thread", Published{450, "400-500/s up to 500 B, 100-200/s at 2,000 B (SSNS); goal 300,000/s"}, runForms},
		{"D2", "5,000 messages into files, over HTTP and over SMTP, one connection", Published{Text: "File > HTTP > SMTP (SSNS, shape)"}, runWays},
		{"D3", "formatting digests of 1 to 10 notifications of 200 characters, thrown away, one thread", Published{Text: "slower, worst at low ratios (SSNS, shape)"}, runDigestForms},
		{"D4", "mails that say the same to 200,000, for 1 to 100 recipients at once", Published{Text: "large gain (SSNS, 2,000, shape); goal 100,000 recipients/s at 100"}, runMulticast},
		{"D4r", "the same mail to 1,000, 100 at once, at 30/s to unlimited, over 1 and 8 connections, to a sink that answers at once or after 400 ms: how many messages leave, and how soon", Published{}, runMulticastAtRate},
		{"D5", "a broadcast to 50,000 over 1 to 8 connections", Published{Text: "+25 to +50 % (SSNS, shape)"}, runConnections},
		{"P1", "300 messages a second for 30 minutes into a channel of 100 a second: how long the backlog takes, under a set clock", Published{60, "360,000 wait, 60 min to drain (SSNS, computed)"}, runBacklog},
		{"L1", "83,333 mails through a provider that takes 250 ms a request and refuses above 360/s", Published{278, "278/s (GOV.UK)"}, runProvider},
		{"L2", "generation alone, delivery alone, both", Published{Text: "generation was the bottleneck (GOV.UK)"}, runBothStages},
		{"L4", "500 changes a second for ten people each, made per change, in windows of 5 s and 1 s, and continuously", Published{}, runGenerations},
		{"L6", "the same provider: the rate in six shares of which one is not used, and the rate as one limit", Published{360, "300/s by share, 360/s shared (GOV.UK)"}, runShare},
		{"L7", "the same provider: 30 and 90 connections at 100 and 250 ms", Published{360, "120/s to 360/s (GOV.UK)"}, runConcurrency},
		{"L9", "an urgent message every 100 ms while a broadcast to 1,000,000 is under way: p99 from its 202 to the sink, and the broadcast's rate with them in turns with that without", Published{Text: "stuck behind 1M (GOV.UK)"}, runUrgentAmid},
		{"L9b", "two services with a broadcast to 1,000,000 each under way: how long one to 1,000 of a third service takes", Published{}, runThird},
		{"L10", "a daily digest of five events for 1,000,000 people at one time: until the last of them has it", Published{60, "goal 60 s, peak RSS 1 GB"}, runDaily},
		{"F1", "webhooks to 10,000 receivers, of each hundred one dead, one slow, one that refuses above 1/s: the rate to the others with and without these", Published{}, runTown(true)},
		{"F1m", "the same by mail, for the domains of one relay", Published{}, runTown(false)},
		{"H1", "ten broadcasts to 1,000,000 people, then 1,000 random histories and traces: p99 of a history", Published{}, runBroadcastHistory},
		{"H2", "10,000,000 events to one person each, then 1,000 random histories and traces: p99 of a history", Published{}, runSingleHistory},
		{"RB1", "100,000 bounces come back at 2,000/s by mail while a broadcast to 500,000 runs: each counts once, and nobody suppressed is mailed later than 1 s after", Published{}, runReturns},
		{"R1", "start to ready with 1,000,000 subscriptions; memory and CPU at rest", Published{}, runRest},
	}, matchingExperiments()...)
}

// A Wrong is what no machine excuses: mails lost or sent twice, a trace that
// does not agree, an event that matched other subscriptions than it should.
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
	o.start()
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
	r := &Record{ID: e.ID, Params: map[string]any{"scale": o.Scale, "seed": o.Seed}, Durability: o.Durability, At: time.Now().UTC(), Call: o.call, Machine: machine(), Goals: goalsAt(e.ID, o.Scale)}
	if e.Published.Text != "" {
		r.Published = &e.Published
	}
	if err := l.describe(r); err != nil {
		return nil, errors.Join(err, l.close())
	}
	before := readCPUTimes()
	err = e.run(l, r)
	r.Steal = readCPUTimes().stolen(before)
	var w *Wrong
	if err != nil && !errors.As(err, &w) {
		return nil, errors.Join(err, l.close())
	}
	if o.Out != "" {
		err = errors.Join(err, r.appendTo(o.Out))
	}
	return r, errors.Join(err, l.close())
}
