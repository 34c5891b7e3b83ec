package delivery

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// traced is the number of random recipients that are looked up after a broadcast.
const Traced = 100

// trace looks up random recipients and checks their deliveries. It returns how long
// after the event the sink accepted their mail, in milliseconds.
func trace(s *harness.Server, b *harness.SentBroadcast, people int, w *report.Checks) ([]float64, error) {
	random := rand.New(rand.NewPCG(s.Env.Seed, 1))
	var after []float64
	for range min(Traced, people) {
		p := loadgen.Person(random.IntN(people))
		page, err := s.API.Deliveries(s.Env.Ctx, b.Event, client.DeliveryQuery{Recipient: p.Address()})
		if err != nil {
			return nil, fmt.Errorf("trace of %s: %w", p.Address(), err)
		}
		if len(page.Deliveries) != 1 {
			w.Require(false, "the trace of %s shows %d deliveries", p.Address(), len(page.Deliveries))
			continue
		}
		d := page.Deliveries[0]
		ok := d.State == "accepted" && len(d.Attempts) == 1 && d.Address == p.Address() && d.Event == b.Event
		w.Require(ok, "the trace of %s does not agree with what was sent: %+v", p.Address(), d)
		if ok {
			after = append(after, report.Millis(d.Attempts[0].At.Sub(b.Stages.Kept)))
		}
	}
	slices.Sort(after)
	return after, nil
}

// RunBroadcast is N1.
func RunBroadcast(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.Unit = "mails/s"
	r.Params["subscriptions"], r.Params["connections"], r.Params["sink"], r.Params["tls"] = n, loadgen.Connections, l.Sink, l.TLS
	before, err := rawlimit.SendRaw(l, n)
	if err != nil {
		return err
	}
	l.Say("raw sender before: %s mails/s", report.Figure(before.PerSecond))
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	var after []float64
	b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: "N1", Lines: lines, Subscriptions: n, Retry: "1s", Inspect: func(s *harness.Server, b *harness.SentBroadcast) (err error) {
		after, err = trace(s, b, n, &w)
		return err
	}}, r, &w)
	if err != nil {
		return err
	}
	judgeBroadcast(r, b, sum, p, n, 0, &w)
	r.P50Millis, r.P99Millis = report.Percentile(after, 50), report.Percentile(after, 99)
	again, err := rawlimit.SendRaw(l, n)
	if err != nil {
		return err
	}
	l.Say("raw sender after: %s mails/s", report.Figure(again.PerSecond))
	r.SetLimit((before.PerSecond + again.PerSecond) / 2)
	r.Note("N5 %s before, %s after; CPU for a mail: raw sender %.1f us, its sink %.1f us", report.Figure(before.PerSecond), report.Figure(again.PerSecond),
		(before.Sender+again.Sender)/2, (before.SinkMicro+again.SinkMicro)/2)
	if err := checkAgainstSMTPSource(l, r, n); err != nil {
		return err
	}
	return w.Err()
}

// judgeBroadcast records the result of a broadcast to n people. others is the number of
// other mails at the sink.
func judgeBroadcast(r *report.Record, b *harness.SentBroadcast, sum sink.Summary, p *harness.Sink, n, others int, w *report.Checks) {
	b.AddStagesTo(r)
	r.Value = float64(n) / b.Durable().Seconds()
	harness.RecordUsage(r, b.WindowUsage)
	r.RSSMiB, r.CPUMicros = b.WholePeakMiB, report.MicrosPer(b.Server, n)
	r.Note("CPU for a mail: server %.1f us, sink %.1f us; server at most %.0f MiB while sending, %.0f MiB since its start",
		report.MicrosPer(b.Server, n), report.MicrosPer(b.Sink, n), b.PeakMiB, b.WholePeakMiB)
	r.Note("%s commits of %.1f outcomes, %.2f ms each", report.Figure(b.Commits), float64(n)/max(1, b.Commits), report.Millis(b.Durable())/max(1, b.Commits))
	w.Require(b.Counts[fanfare.Accepted] == int64(n), "%d of %d deliveries are accepted", b.Counts[fanfare.Accepted], n)
	if p.Builtin {
		r.Note("a mail has %d bytes; from the first to the last mail at the sink %.2f s", sum.Bytes/max(1, sum.Messages), sum.LastAt.Sub(sum.FirstAt).Seconds())
	}
	harness.CheckSink(r, p, sum, n+others, w)
}
