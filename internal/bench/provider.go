package bench

import (
	"bytes"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// The provider of GOV.UK's published figures.
const (
	providerDelay = 250 * time.Millisecond // of a request
	providerAbove = 360                    // requests a second, above which it refuses
)

// A provided is what came of a broadcast through a provider.
type provided struct {
	perSecond float64 // from the kept event to the last durable outcome
	refused   int64   // by the provider, because there were too many in a second
	*sending
	sum sink.Summary
}

// provide broadcasts to n people through a provider that takes its time and refuses
// what is too much. Each mail must come once in the end.
func (l *lab) provide(name string, n int, delay time.Duration, config func(relay string) []byte, lines string, w *wrong) (provided, error) {
	var aside Record
	b, p, sum, err := l.send(plan{data: name, lines: lines, subs: n, config: config,
		post: postSpec{above: providerAbove, inject: sink.Inject{Seed: l.Seed, Delay: delay}}}, &aside, w)
	if err != nil {
		return provided{}, err
	}
	aside.account(p, sum, n, w)
	return provided{float64(n) / b.durable().Seconds(), sum.RejectedAbove, b, sum}, nil
}

// atRate is the channel of those who know what their provider takes.
func atRate(workers int) func(relay string) []byte {
	return func(relay string) []byte {
		return way{relay: relay, retry: "1s, 1s, 2s", connections: workers, rate: fmt.Sprintf("%d/s", providerAbove)}.configuration(service)
	}
}

// allForOne is atRate with all connections for whoever sends.
func allForOne(workers int) func(relay string) []byte {
	return func(relay string) []byte {
		return way{relay: relay, retry: "1s, 1s, 2s", connections: workers, rate: fmt.Sprintf("%d/s", providerAbove), reserve: "{urgent: 0%, normal: 0%}"}.configuration(service)
	}
}

// runProvider is L1.
func runProvider(l *lab, r *Record) error {
	const workers = 100
	n := l.size(83_333, 500)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["connections"], r.Params["sink"] = n, workers, "builtin"
	lines, err := l.notifyPeople(n)
	if err != nil {
		return err
	}
	var w wrong
	got, err := l.provide("L1", n, providerDelay, atRate(workers), lines, &w)
	if err != nil {
		return err
	}
	got.stagesInto(r)
	r.take(got.toll)
	r.Value, r.CPUMicros = got.perSecond, micro(got.server, n)
	r.limit(providerAbove)
	r.over("mails", got.sum.Over)
	r.note("%s of %s requests were refused, %.3f %% (goal: 355 mails/s, and fewer than 0.1 %% refused)", thousands(got.refused), thousands(int64(n)+got.refused), 100*float64(got.refused)/float64(int64(n)+got.refused))
	return w.err()
}

// concurrencySeconds is for how long each combination of L7 sends, so that its
// beginning and its end, in which not all connections are in use, do not count much.
const concurrencySeconds = 40

// runConcurrency is L7.
func runConcurrency(l *lab, r *Record) error {
	r.Unit = "mails/s"
	r.Params["seconds"], r.Params["sink"] = concurrencySeconds, "builtin"
	var w wrong
	var used toll
	var at string
	for _, workers := range []int{30, 90} {
		for _, delay := range []time.Duration{100 * time.Millisecond, providerDelay} {
			at = fmt.Sprintf("%d connections, %v", workers, delay)
			limit := min(providerAbove, float64(workers)/delay.Seconds())
			n := l.size(int(concurrencySeconds*limit), 200)
			lines, err := l.notifyPeople(n)
			if err != nil {
				return err
			}
			got, err := l.provide(fmt.Sprintf("L7-%d-%d", workers, delay.Milliseconds()), n, delay, allForOne(workers), lines, &w)
			if err != nil {
				return err
			}
			used.add(got.toll)
			r.point(Point{At: at, Value: got.perSecond, Limit: limit})
			r.note("%s: %d requests refused", at, got.refused)
		}
	}
	r.note("the limit is the lesser of what the provider takes and of connections by latency; no connection is kept for other lanes")
	r.take(used)
	return errorsOf(r.stand(at), w)
}

// Of L6: senders of which one has other work to do.
const senders = 6

// byShare gives each sender its part of the rate.
func byShare(relay string) []byte {
	text := fmt.Appendf(nil, "service: %s\nchannels:\n", service)
	each := way{relay: relay, retry: "1s, 1s, 2s", connections: connections, rate: fmt.Sprintf("%d/s", providerAbove/senders)}
	for i := range senders {
		text = fmt.Appendf(text, "  email%d: %s\n", i, each.channel())
	}
	_, rest, _ := bytes.Cut(configuration(relay, "1s"), []byte("topics:"))
	return append(append(text, "topics:"...), rest...)
}

// runShare is L6.
func runShare(l *lab, r *Record) error {
	n := l.size(18_000, 500)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["sink"] = n, "builtin"
	lines, shared := l.file("shares.ndjson"), ""
	_, err := writeLines(lines, n, func(dst []byte, i int) []byte {
		line := appendSubscription(nil, person(i), l.Seed, notifyFilter)
		return append(dst, bytes.Replace(line, []byte(`"email"`), fmt.Appendf(nil, `"email%d"`, i%(senders-1)), 1)...)
	})
	if err != nil {
		return err
	}
	if shared, err = l.notifyPeople(n); err != nil {
		return err
	}
	var w wrong
	var used toll
	for _, c := range []struct {
		at, lines string
		config    func(string) []byte
	}{{"by share", lines, byShare}, {"by use", shared, atRate(100)}} {
		got, err := l.provide("L6-"+c.at[3:], n, providerDelay, c.config, c.lines, &w)
		if err != nil {
			return err
		}
		used.add(got.toll)
		r.over(c.at, got.sum.Over)
		r.point(Point{At: c.at, Value: got.perSecond, Limit: providerAbove})
		r.note("%s: %d requests refused", c.at, got.refused)
	}
	r.note("by share: %d channels with a %dth of the rate each, of which one has nothing to send; by use: one limit for whoever sends", senders, senders)
	r.take(used)
	return errorsOf(r.stand("by use"), w)
}

// errorsOf is the first that there is.
func errorsOf(err error, w wrong) error {
	if err != nil {
		return err
	}
	return w.err()
}

// runBothStages is L2.
func runBothStages(l *lab, r *Record) error {
	n := l.size(200_000, 1000)
	r.Unit = "mails/s"
	r.Params["mails"], r.Params["connections"], r.Params["sink"] = n, connections, l.Sink
	lines, err := l.notifyPeople(n)
	if err != nil {
		return err
	}
	var w wrong
	generation, delivery, err := l.stagesApart(n, lines, &w)
	if err != nil {
		return err
	}
	var aside Record
	b, p, sum, err := l.send(plan{data: "L2-both", lines: lines, subs: n, retry: "1s"}, &aside, &w)
	if err != nil {
		return err
	}
	r.account(p, sum, n, &w)
	r.take(b.toll)
	r.over("both", sum.Over)
	both := float64(n) / b.durable().Seconds()
	for _, p := range []Point{{At: "generation alone", Value: float64(n) / generation.Seconds()}, {At: "delivery alone", Value: float64(n) / delivery.Seconds()}, {At: "both", Value: both}} {
		r.point(p)
	}
	slower := "delivery"
	if generation > delivery {
		slower = "generation"
	}
	r.note("generation: from the kept event until its manifests can be read, while all is paused; delivery: from then on, once it is resumed. The slower of them is %s; published: generation", slower)
	return errorsOf(r.stand("both"), w)
}

// stagesApart has a server generate while nothing may leave, and then deliver.
func (l *lab) stagesApart(n int, lines string, w *wrong) (generation, delivery time.Duration, err error) {
	box, err := l.openPost(postSpec{})
	if err != nil {
		return 0, 0, err
	}
	s, err := l.serve("L2-apart")
	if err != nil {
		return 0, 0, err
	}
	if _, _, err := s.fill(box.addr, lines); err != nil {
		return 0, 0, err
	}
	if err := s.pauseAll(); err != nil {
		return 0, 0, err
	}
	accepted, err := s.api.Publish(l.ctx, "news", newsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return 0, 0, err
	}
	b, frozen, err := s.manifestsDurable(accepted.ID)
	if err != nil {
		return 0, 0, err
	}
	generation = frozen.Sub(b.Stages.Kept)
	resumed := time.Now()
	if err := s.api.Resume(l.ctx, fanfare.Scope{Kind: fanfare.ScopeService, Name: service}, "delivery alone"); err != nil {
		return 0, 0, err
	}
	sent, err := s.completed(accepted.ID, func(*fanfare.Broadcast) {})
	if err != nil {
		return 0, 0, err
	}
	delivery = sent.durableAt.Sub(resumed)
	if err := s.stop(); err != nil {
		return 0, 0, err
	}
	sum, err := box.end()
	var aside Record
	aside.account(box, sum, n, w)
	return generation, delivery, err
}
