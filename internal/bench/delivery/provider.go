package delivery

import (
	"bytes"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// The provider of GOV.UK's published figures.
const (
	providerDelay = 250 * time.Millisecond // of a request
	providerAbove = 360                    // requests a second, above which it refuses
)

// A providerRun is the result of a broadcast through a provider.
type providerRun struct {
	perSecond float64 // from the acceptance to the last durable outcome
	refused   int64   // by the provider, because there were too many in a second
	*harness.SentBroadcast
	sum sink.Summary
}

// sendThroughProvider sends a broadcast to n people through a provider with a delay and
// a maximum rate. Each mail must arrive once.
func sendThroughProvider(l *harness.Env, name string, n int, delay time.Duration, config func(relay string) []byte, lines string, w *report.Checks) (providerRun, error) {
	var aside report.Record
	b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: name, Lines: lines, Subscriptions: n, Config: config,
		Sink: harness.SinkOptions{Above: providerAbove, Inject: sink.Inject{Seed: l.Seed, Delay: delay}}}, &aside, w)
	if err != nil {
		return providerRun{}, err
	}
	harness.CheckSink(&aside, p, sum, n, w)
	return providerRun{float64(n) / b.Durable().Seconds(), sum.RejectedAbove, b, sum}, nil
}

// sharedRate returns the document with a channel that has the rate of the provider.
func sharedRate(workers int) func(relay string) []byte {
	return func(relay string) []byte {
		return loadgen.Channel{Relay: relay, Retry: "1s, 1s, 2s", Connections: workers, Rate: fmt.Sprintf("%d/s", providerAbove)}.Configuration(loadgen.Service)
	}
}

// withoutReserve is sharedRate without connections that are reserved for other lanes.
func withoutReserve(workers int) func(relay string) []byte {
	return func(relay string) []byte {
		return loadgen.Channel{Relay: relay, Retry: "1s, 1s, 2s", Connections: workers, Rate: fmt.Sprintf("%d/s", providerAbove), Reserve: "{urgent: 0%, normal: 0%}"}.Configuration(loadgen.Service)
	}
}

// RunProvider is L1.
func RunProvider(l *harness.Env, r *report.Record) error {
	const workers = 100
	n := l.Size(83_333, 500)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["connections"], r.Params["sink"] = n, workers, "builtin"
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	got, err := sendThroughProvider(l, "L1", n, providerDelay, sharedRate(workers), lines, &w)
	if err != nil {
		return err
	}
	got.AddStagesTo(r)
	harness.RecordUsage(r, got.WindowUsage)
	r.Value, r.CPUMicros = got.perSecond, report.MicrosPer(got.Server, n)
	r.SetLimit(providerAbove)
	r.AddSeries("mails", got.sum.Over)
	r.Note("the provider refused %s of %s requests, %.3f %% (goal: 355 mails/s, and fewer than 0.1 %% refused)", report.Thousands(got.refused), report.Thousands(int64(n)+got.refused), 100*float64(got.refused)/float64(int64(n)+got.refused))
	return w.Err()
}

// concurrencySeconds is how long each combination of L7 sends. It is so long that the
// beginning and the end, in which not all connections are busy, count little.
const concurrencySeconds = 40

// RunConcurrency is L7.
func RunConcurrency(l *harness.Env, r *report.Record) error {
	r.Unit = "mails/s"
	r.Params["seconds"], r.Params["sink"] = concurrencySeconds, "builtin"
	var w report.Checks
	var used harness.WindowUsage
	var at string
	for _, workers := range []int{30, 90} {
		for _, delay := range []time.Duration{100 * time.Millisecond, providerDelay} {
			at = fmt.Sprintf("%d connections, %v", workers, delay)
			limit := min(providerAbove, float64(workers)/delay.Seconds())
			n := l.Size(int(concurrencySeconds*limit), 200)
			lines, err := l.NotifyPeople(n)
			if err != nil {
				return err
			}
			got, err := sendThroughProvider(l, fmt.Sprintf("L7-%d-%d", workers, delay.Milliseconds()), n, delay, withoutReserve(workers), lines, &w)
			if err != nil {
				return err
			}
			used.Add(got.WindowUsage)
			r.AddPoint(report.Point{At: at, Value: got.perSecond, Limit: limit})
			r.Note("%s: %d requests refused", at, got.refused)
		}
	}
	r.Note("the limit is the lower of the rate of the provider and of connections by latency; no connection is reserved for other lanes")
	harness.RecordUsage(r, used)
	return report.FirstError(r.UsePoint(at), w)
}

// senders is the number of channels in L6, one of which has nothing to send.
const senders = 6

// splitRate returns the document with a channel for each sender, which has its part of
// the rate.
func splitRate(relay string) []byte {
	text := fmt.Appendf(nil, "service: %s\nchannels:\n", loadgen.Service)
	each := loadgen.Channel{Relay: relay, Retry: "1s, 1s, 2s", Connections: loadgen.Connections, Rate: fmt.Sprintf("%d/s", providerAbove/senders)}
	for i := range senders {
		text = fmt.Appendf(text, "  email%d: %s\n", i, each.Document())
	}
	_, rest, _ := bytes.Cut(loadgen.Configuration(relay, "1s"), []byte("topics:"))
	return append(append(text, "topics:"...), rest...)
}

// RunShare is L6.
func RunShare(l *harness.Env, r *report.Record) error {
	n := l.Size(18_000, 500)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["sink"] = n, "builtin"
	lines, shared := l.File("shares.ndjson"), ""
	_, err := loadgen.WriteLines(lines, n, func(dst []byte, i int) []byte {
		line := loadgen.AppendSubscription(nil, loadgen.Person(i), l.Seed, loadgen.NotifyFilter)
		return append(dst, bytes.Replace(line, []byte(`"email"`), fmt.Appendf(nil, `"email%d"`, i%(senders-1)), 1)...)
	})
	if err != nil {
		return err
	}
	if shared, err = l.NotifyPeople(n); err != nil {
		return err
	}
	var w report.Checks
	var used harness.WindowUsage
	for _, c := range []struct {
		at, lines string
		config    func(string) []byte
	}{{"by share", lines, splitRate}, {"by use", shared, sharedRate(100)}} {
		got, err := sendThroughProvider(l, "L6-"+c.at[3:], n, providerDelay, c.config, c.lines, &w)
		if err != nil {
			return err
		}
		used.Add(got.WindowUsage)
		r.AddSeries(c.at, got.sum.Over)
		r.AddPoint(report.Point{At: c.at, Value: got.perSecond, Limit: providerAbove})
		r.Note("%s: %d requests refused", c.at, got.refused)
	}
	r.Note("by share: %d channels, each with 1/%d of the rate, one of which has nothing to send; by use: one limit for all senders", senders, senders)
	harness.RecordUsage(r, used)
	return report.FirstError(r.UsePoint("by use"), w)
}

// RunBothStages is L2.
func RunBothStages(l *harness.Env, r *report.Record) error {
	n := l.Size(200_000, 1000)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["connections"], r.Params["sink"] = n, loadgen.Connections, l.Sink
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	generation, delivery, err := measureStages(l, n, lines, &w)
	if err != nil {
		return err
	}
	var aside report.Record
	b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: "L2-both", Lines: lines, Subscriptions: n, Retry: "1s"}, &aside, &w)
	if err != nil {
		return err
	}
	harness.CheckSink(r, p, sum, n, &w)
	harness.RecordUsage(r, b.WindowUsage)
	r.AddSeries("both", sum.Over)
	both := float64(n) / b.Durable().Seconds()
	for _, p := range []report.Point{{At: "generation alone", Value: float64(n) / generation.Seconds()}, {At: "delivery alone", Value: float64(n) / delivery.Seconds()}, {At: "both", Value: both}} {
		r.AddPoint(p)
	}
	slower := "delivery"
	if generation > delivery {
		slower = "generation"
	}
	r.Note("generation: from the acceptance of the event until its manifests can be read, while the service is paused; delivery: from the resume to the last durable outcome. The slower stage is %s; published: generation", slower)
	return report.FirstError(r.UsePoint("both"), w)
}

// measureStages measures generation while the service is paused, and then delivery.
func measureStages(l *harness.Env, n int, lines string, w *report.Checks) (generation, delivery time.Duration, err error) {
	mailSink, err := l.OpenSink(harness.SinkOptions{})
	if err != nil {
		return 0, 0, err
	}
	s, err := l.StartServer("L2-apart")
	if err != nil {
		return 0, 0, err
	}
	if _, _, err := s.FillFor(mailSink.Addr, lines); err != nil {
		return 0, 0, err
	}
	if err := s.PauseAll(); err != nil {
		return 0, 0, err
	}
	accepted, err := s.API.Publish(l.Ctx, "news", loadgen.NewsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return 0, 0, err
	}
	b, frozen, err := s.WaitManifests(accepted.ID)
	if err != nil {
		return 0, 0, err
	}
	generation = frozen.Sub(b.Stages.Kept)
	resumed := time.Now()
	if err := s.API.Resume(l.Ctx, fanfare.Scope{Kind: fanfare.ScopeService, Name: loadgen.Service}, "delivery alone"); err != nil {
		return 0, 0, err
	}
	sent, err := s.WaitCompleted(accepted.ID, func(*fanfare.Broadcast) {})
	if err != nil {
		return 0, 0, err
	}
	delivery = sent.DurableAt.Sub(resumed)
	if err := s.Stop(); err != nil {
		return 0, 0, err
	}
	sum, err := mailSink.Finish()
	var aside report.Record
	harness.CheckSink(&aside, mailSink, sum, n, w)
	return generation, delivery, err
}
