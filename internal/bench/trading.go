package bench

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// Of the stock case.
const (
	minutes     = 3     // C1: rounds of one quote for each symbol
	minuteStep  = 16    // percent at most from quote to quote: about 40 alerts are met
	tickStep    = 0.02  // C2
	halfOfTicks = 10000 // a second: half of what is demanded
	lookedAt    = 1000  // quotes whose times are looked up
)

// openMarket starts a server with the alerts of the stock case.
func (l *lab) openMarket(name string, r *Record) (*market, *post, *server, error) {
	n := l.size(1_000_000, 5000)
	m := newMarket(n, l.Seed)
	r.Params["subscriptions"], r.Params["people"], r.Params["symbols"] = n, n/alertsOfEach, marketSymbols
	lines := l.file("alerts.ndjson")
	if _, err := writeLines(lines, n, m.lines()); err != nil {
		return nil, nil, nil, err
	}
	box, s, err := l.stock(marketConfiguration, name, lines)
	return m, box, s, err
}

// runMinutes is C1: quotes come by the minute, a thousand at once.
func runMinutes(l *lab, r *Record) error {
	m, box, s, err := l.openMarket("C1", r)
	if err != nil {
		return err
	}
	r.Unit = "mails/s"
	window := s.openWindow(box)
	if err := s.toggleProfile(); err != nil {
		return err
	}
	var sending time.Duration
	var after []float64
	var mails int64
	for round := range minutes + 1 { // the first opens the market: nothing was before it
		var body []byte
		var wanted []string
		for range marketSymbols {
			var told int
			if body, told = m.appendQuote(body, minuteStep); told > 0 {
				wanted = append(wanted, fmt.Sprint("quote-", m.quotes-1))
			}
		}
		if err := s.publishAll(body, marketSymbols); err != nil {
			return err
		}
		if _, err := s.quiet(func(int64) {}); err != nil {
			return err
		}
		seen := time.Now()
		all, err := s.broadcasts(wanted)
		if err != nil {
			return err
		}
		if round == 0 || len(all) == 0 {
			continue
		}
		took, each := roundTimes(all, seen)
		for i := range all {
			mails += all[i].Messages
		}
		after = append(after, each...)
		sending += took
		r.stage(fmt.Sprintf("minute %d, first quote received to last outcome durable", round), took)
	}
	if err := s.toggleProfile(); err != nil {
		return err
	}
	r.take(window.close())
	r.Value = float64(mails) / max(sending.Seconds(), 1e-3)
	slices.Sort(after)
	r.P50Millis, r.P99Millis = percentile(after, 50), percentile(after, 99)
	r.note("%d minutes of %s quotes, %.1f mails a quote; p50 and p99 are of a quote, from its intake until the outcome of its last mail is durable", minutes, thousands(marketSymbols), float64(mails)/(minutes*marketSymbols))
	r.note("a minute begins when the mails of the one before have left; published over HTTP, here by mail to the sink, as there is no webhook yet")
	return s.closeMarket(r, m, box)
}

// roundTimes returns how long a round of quotes took, from the intake of the first
// until all outcomes were durable, and how long each quote took, in milliseconds.
// All were seen to be completed at the time seen.
func roundTimes(all []fanfare.Broadcast, seen time.Time) (whole time.Duration, each []float64) {
	clock := newOutcomeClock(all, seen)
	first, last := all[0].Stages.Received, time.Time{}
	for i := range all {
		st := &all[i].Stages
		done := clock.durableAt(st.Completed)
		each = append(each, millis(done.Sub(st.Received)))
		if st.Received.Before(first) {
			first = st.Received
		}
		if done.After(last) {
			last = done
		}
	}
	return last.Sub(first), each
}

// closeMarket holds what came to the sink against what the quotes demanded.
func (s *server) closeMarket(r *Record, m *market, box *post) error {
	var w wrong
	if err := s.stop(); err != nil {
		return err
	}
	sum, err := box.end()
	if err != nil {
		return err
	}
	r.account(box, sum, int(m.told), &w)
	if r.Limit == 0 {
		raw, err := s.lab.blast(int(max(m.told, 1000)))
		if err != nil {
			return err
		}
		r.limit(raw.perSecond)
		r.note("the limit is a raw sender of as many mails to the same sink")
	}
	return w.err()
}

// publishAll publishes quotes with one request.
func (s *server) publishAll(body []byte, n int) error {
	sum, err := s.api.PublishLines(s.lab.ctx, "quote", bytes.NewReader(body), client.PublishOptions{IDPointer: "/id"}, nil, nil)
	if err == nil && sum.Accepted != int64(n) {
		err = fmt.Errorf("%d of %d quotes were taken", sum.Accepted, n)
	}
	return err
}

// runTicks is C2: quotes as fast as they go, and then at half of the demanded pace.
func runTicks(l *lab, r *Record) error {
	m, box, s, err := l.openMarket("C2", r)
	if err != nil {
		return err
	}
	r.Unit = "quotes/s"
	ticks := l.size(200_000, 2*marketSymbols)
	r.Params["quotes"] = ticks
	var body []byte
	for range ticks {
		body, _ = m.appendQuote(body, tickStep)
	}
	raw, err := l.rawEvents((ticks+maxGroup-1)/maxGroup, maxGroup, len(body)/ticks)
	if err != nil {
		return err
	}
	window := s.openWindow(box)
	if err := s.toggleProfile(); err != nil {
		return err
	}
	if err := s.publishAll(body, ticks); err != nil {
		return err
	}
	mails := m.told
	took, err := s.untilLastManifest("quote-0", fmt.Sprint("quote-", ticks-1))
	if err != nil {
		return err
	}
	if _, err := s.quiet(func(int64) {}); err != nil {
		return err
	}
	if err := s.toggleProfile(); err != nil {
		return err
	}
	r.take(window.close())
	r.Value, r.CPUMicros = float64(ticks)/took.Seconds(), 1e6*r.CPUSeconds/float64(ticks)
	r.limit(raw)
	r.note("full pace: %s quotes in one request, %.2f mails a quote; server CPU %.1f us a quote with its mails", thousands(int64(ticks)), float64(mails)/float64(ticks), 1e6*r.CPUSeconds/float64(ticks))
	if err := s.halfPace(r, m); err != nil {
		return err
	}
	r.note("value: from the first quote's intake until the last one's manifest is durable; the limit is raw NATS publish of the same bytes in groups of %d", maxGroup)
	r.note("by mail to the sink, as there is no webhook yet")
	return s.closeMarket(r, m, box)
}

// untilLastManifest returns how long it took from the intake of the first event
// until the manifests of the last were durable.
func (s *server) untilLastManifest(first, last string) (time.Duration, error) {
	_, durable, err := s.manifestsDurable(last)
	if err != nil {
		return 0, err
	}
	begun, err := s.api.Event(s.lab.ctx, first)
	return durable.Sub(begun.Stages.Received), err
}

// halfPace posts quotes as they come at a steady pace, and looks at the times of
// those that somebody waits for.
func (s *server) halfPace(r *Record, m *market) error {
	pace := min(halfOfTicks, r.Value/2)
	length := time.Duration(max(1, min(10, 10*s.lab.Scale)) * float64(time.Second))
	var wanted []string
	watch := s.watchManifests()
	f, err := s.flow("quote", pace, length, func(dst []byte, _ int) []byte {
		dst, told := m.appendQuote(dst, tickStep)
		if told > 0 {
			wanted = append(wanted, fmt.Sprint("quote-", m.quotes-1))
		}
		return dst
	})
	if err != nil {
		return err
	}
	if _, err := s.quiet(func(int64) {}); err != nil {
		return err
	}
	seen := time.Now()
	if err := watch.end(s); err != nil {
		return err
	}
	var some []string
	for i := range min(lookedAt, len(wanted)) {
		some = append(some, wanted[i*len(wanted)/min(lookedAt, len(wanted))])
	}
	all, err := s.broadcasts(some)
	if err != nil {
		return err
	}
	batch, err := watch.untilManifests(all)
	if err != nil {
		return err
	}
	clock := newOutcomeClock(all, seen)
	var first []float64
	for i := range all {
		first = append(first, millis(clock.durableAt(all[i].Stages.First).Sub(all[i].Stages.Received)))
	}
	slices.Sort(first)
	r.P50Millis, r.P99Millis = percentile(batch, 50), percentile(batch, 99)
	r.note("at %s quotes/s: from a quote's intake until its manifest is durable and its batch goes out p50 %s, p99 %s, longest %s ms; until the outcome of its first mail is durable, at most, p50 %s, p99 %s ms (%d quotes)",
		figure(float64(f.posted)/f.took.Seconds()), figure(r.P50Millis), figure(r.P99Millis), figure(percentile(batch, 100)), figure(percentile(first, 50)), figure(percentile(first, 99)), len(all))
	return nil
}
