package matching

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
)

// Sizes of the stock case.
const (
	minutes     = 3     // C1: rounds of one quote for each symbol
	minuteStep  = 16    // percent at most from quote to quote: a quote matches about 40 alerts
	tickStep    = 0.02  // C2
	halfOfTicks = 10000 // a second: half of the required rate
	LookedAt    = 1000  // quotes whose times are read
)

// openMarket starts a server with the alerts of the stock case.
func openMarket(l *harness.Env, name string, r *report.Record) (*stockMarket, *harness.Sink, *harness.Server, error) {
	n := l.Size(1_000_000, 5000)
	m := newStockMarket(n, l.Seed)
	r.Params["subscriptions"], r.Params["people"], r.Params["symbols"] = n, n/loadgen.AlertsOfEach, marketSymbols
	lines := l.File("alerts.ndjson")
	if _, err := loadgen.WriteLines(lines, n, m.lines()); err != nil {
		return nil, nil, nil, err
	}
	mailSink, s, err := l.StartFilled(stockConfiguration, name, lines)
	return m, mailSink, s, err
}

// RunMinutes is C1: quotes come by the minute, a thousand at once.
func RunMinutes(l *harness.Env, r *report.Record) error {
	m, mailSink, s, err := openMarket(l, "C1", r)
	if err != nil {
		return err
	}
	r.Unit = "mails/s"
	window := s.OpenWindow(mailSink)
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	done, err := runMinutes(s, m, func(round int, took time.Duration) {
		r.AddStage(fmt.Sprintf("minute %d, first quote received to last outcome durable", round), took)
	})
	if err != nil {
		return err
	}
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	harness.RecordUsage(r, window.Close())
	r.Value = done.rate()
	r.P50Millis, r.P99Millis = report.Percentile(done.quotes, 50), report.Percentile(done.quotes, 99)
	r.Note("%d minutes of %s quotes, %.1f mails a quote; p50 and p99 are of a quote, from its intake until the outcome of its last mail is durable", minutes, report.Thousands(marketSymbols), float64(done.mails)/(minutes*marketSymbols))
	r.Note("a minute begins when the mails of the minute before have left; the published figure is over HTTP, this one by mail to the sink")
	return closeMarket(s, r, m, mailSink)
}

// minutesDone is what the minutes of quotes led to.
type minutesDone struct {
	mails   int64
	sending time.Duration // of all minutes, from the first quote's intake until the last outcome was durable
	quotes  []float64     // how long each quote took, in milliseconds, sorted
}

// rate returns mails per second.
func (d *minutesDone) rate() float64 { return float64(d.mails) / max(d.sending.Seconds(), 1e-3) }

// runMinutes publishes a quote for each symbol in each minute. A minute begins when the
// mails of the minute before have left.
func runMinutes(s *harness.Server, m *stockMarket, minute func(round int, took time.Duration)) (done minutesDone, err error) {
	for round := range minutes + 1 { // the first round opens the market: no quote was before it
		var body []byte
		var wanted []string
		for range marketSymbols {
			var told int
			if body, told = m.appendQuote(body, minuteStep); told > 0 {
				wanted = append(wanted, fmt.Sprint("quote-", m.quotes-1))
			}
		}
		if err := PublishAll(s, body, marketSymbols); err != nil {
			return done, err
		}
		if _, err := s.WaitIdle(func(int64) {}); err != nil {
			return done, err
		}
		seen := time.Now()
		all, err := s.Events(wanted)
		if err != nil {
			return done, err
		}
		if round == 0 || len(all) == 0 {
			continue
		}
		took, each := roundTimes(all, seen)
		for i := range all {
			done.mails += all[i].Messages
		}
		done.quotes = append(done.quotes, each...)
		done.sending += took
		minute(round, took)
	}
	slices.Sort(done.quotes)
	return done, nil
}

// roundTimes returns how long a round of quotes took, from the intake of the first
// until all outcomes were durable, and how long each quote took, in milliseconds.
// All were seen to be completed at the time seen.
func roundTimes(all []fanfare.Broadcast, seen time.Time) (whole time.Duration, each []float64) {
	clock := harness.NewOutcomeClock(all, seen)
	first, last := all[0].Stages.Received, time.Time{}
	for i := range all {
		st := &all[i].Stages
		done := clock.DurableAt(st.Completed)
		each = append(each, report.Millis(done.Sub(st.Received)))
		if st.Received.Before(first) {
			first = st.Received
		}
		if done.After(last) {
			last = done
		}
	}
	return last.Sub(first), each
}

// closeMarket compares the mails at the sink with those that the quotes must lead to.
func closeMarket(s *harness.Server, r *report.Record, m *stockMarket, mailSink *harness.Sink) error {
	var w report.Checks
	if err := s.Stop(); err != nil {
		return err
	}
	sum, err := mailSink.Finish()
	if err != nil {
		return err
	}
	harness.CheckSink(r, mailSink, sum, int(m.told), &w)
	if r.Limit == 0 {
		raw, err := rawlimit.SendRaw(s.Env, int(max(m.told, 1000)))
		if err != nil {
			return err
		}
		r.SetLimit(raw.PerSecond)
		r.Note("the limit is a raw sender of as many mails to the same sink")
	}
	return w.Err()
}

// PublishAll publishes quotes with one request.
func PublishAll(s *harness.Server, body []byte, n int) error {
	sum, err := s.API.PublishLines(s.Env.Ctx, "quote", bytes.NewReader(body), client.PublishOptions{IDPointer: "/id"}, nil, nil)
	if err == nil && sum.Accepted != int64(n) {
		err = fmt.Errorf("the server accepted %d of %d quotes", sum.Accepted, n)
	}
	return err
}

// RunTicks is C2: quotes at maximum speed, and then at half of the required rate.
func RunTicks(l *harness.Env, r *report.Record) error {
	m, mailSink, s, err := openMarket(l, "C2", r)
	if err != nil {
		return err
	}
	r.Unit = "quotes/s"
	ticks := l.Size(200_000, 2*marketSymbols)
	r.Params["quotes"] = ticks
	var body []byte
	for range ticks {
		body, _ = m.appendQuote(body, tickStep)
	}
	raw, err := rawlimit.RawEvents(l, (ticks+rawlimit.MaxGroup-1)/rawlimit.MaxGroup, rawlimit.MaxGroup, len(body)/ticks)
	if err != nil {
		return err
	}
	window := s.OpenWindow(mailSink)
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	if err := PublishAll(s, body, ticks); err != nil {
		return err
	}
	mails := m.told
	took, err := untilLastManifest(s, "quote-0", fmt.Sprint("quote-", ticks-1))
	if err != nil {
		return err
	}
	if _, err := s.WaitIdle(func(int64) {}); err != nil {
		return err
	}
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	harness.RecordUsage(r, window.Close())
	r.Value, r.CPUMicros = float64(ticks)/took.Seconds(), 1e6*r.CPUSeconds/float64(ticks)
	r.SetLimit(raw)
	r.Note("full pace: %s quotes in one request, %.2f mails a quote; server CPU %.1f us for a quote and its mails", report.Thousands(int64(ticks)), float64(mails)/float64(ticks), 1e6*r.CPUSeconds/float64(ticks))
	if err := halfPace(s, r, m); err != nil {
		return err
	}
	r.Note("value: from the first quote's intake until the last one's manifest is durable; the limit is raw NATS publish of the same bytes in groups of %d", rawlimit.MaxGroup)
	r.Note("the mails go to the sink")
	return closeMarket(s, r, m, mailSink)
}

// untilLastManifest returns how long it took from the intake of the first event
// until the manifests of the last were durable.
func untilLastManifest(s *harness.Server, first, last string) (time.Duration, error) {
	_, durable, err := s.WaitManifests(last)
	if err != nil {
		return 0, err
	}
	begun, err := s.API.Event(s.Env.Ctx, first)
	return durable.Sub(begun.Stages.Received), err
}

// halfPace posts quotes at a steady rate and reads the times of those that match an
// alert.
func halfPace(s *harness.Server, r *report.Record, m *stockMarket) error {
	pace := min(halfOfTicks, r.Value/2)
	length := time.Duration(max(1, min(10, 10*s.Env.Scale)) * float64(time.Second))
	var wanted []string
	watch := s.WatchManifests()
	f, err := s.PublishSteadily("quote", pace, length, func(dst []byte, _ int) []byte {
		dst, told := m.appendQuote(dst, tickStep)
		if told > 0 {
			wanted = append(wanted, fmt.Sprint("quote-", m.quotes-1))
		}
		return dst
	})
	if err != nil {
		return err
	}
	if _, err := s.WaitIdle(func(int64) {}); err != nil {
		return err
	}
	seen := time.Now()
	if err := watch.End(s); err != nil {
		return err
	}
	var some []string
	for i := range min(LookedAt, len(wanted)) {
		some = append(some, wanted[i*len(wanted)/min(LookedAt, len(wanted))])
	}
	all, err := s.Events(some)
	if err != nil {
		return err
	}
	batch, err := watch.UntilManifests(all)
	if err != nil {
		return err
	}
	clock := harness.NewOutcomeClock(all, seen)
	var first []float64
	for i := range all {
		first = append(first, report.Millis(clock.DurableAt(all[i].Stages.First).Sub(all[i].Stages.Received)))
	}
	slices.Sort(first)
	r.P50Millis, r.P99Millis = report.Percentile(batch, 50), report.Percentile(batch, 99)
	r.Note("at %s quotes/s: from a quote's intake until its manifest is durable and its batch goes out p50 %s, p99 %s, longest %s ms; until the outcome of its first mail is durable, at most, p50 %s, p99 %s ms (%d quotes)",
		report.Figure(float64(f.Posted)/f.Took.Seconds()), report.Figure(r.P50Millis), report.Figure(r.P99Millis), report.Figure(report.Percentile(batch, 100)), report.Figure(report.Percentile(first, 50)), report.Figure(report.Percentile(first, 99)), len(all))
	return nil
}
