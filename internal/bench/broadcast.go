package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// traced is how many random recipients are looked up after a broadcast.
const traced = 100

// fill configures the server to send to relay and imports what is in the file.
func (s *server) fill(relay, lines string) (client.PutSummary, time.Duration, error) {
	return s.fillWith(configuration(relay, "1s"), lines)
}

func (s *server) fillWith(document []byte, lines string) (sum client.PutSummary, took time.Duration, err error) {
	if _, err := s.api.Apply(s.lab.ctx, document, false); err != nil {
		return sum, 0, err
	}
	return s.importFile(lines)
}

func (s *server) importFile(path string) (sum client.PutSummary, took time.Duration, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return sum, 0, err
	}
	bar := s.lab.bar("import", info.Size())
	defer bar.end()
	started := time.Now()
	sum, err = s.api.ImportSubscriptions(s.lab.ctx, f, func(p client.Progress) { bar.set(p.Bytes) })
	return sum, time.Since(started), err
}

// A sending is one broadcast, watched from the 202 to its last outcome.
type sending struct {
	completion
	accepted      time.Time     // when the 202 was read
	firstAttempts time.Duration // from the kept event until a poll saw nobody who was not tried
	toll                        // while the clock ran
	wholePeakMiB  float64       // of the server, since its start
	commits       float64       // transactions in which outcomes were kept
}

// broadcast publishes the news of the day and waits until all is settled; amid runs
// beside it, where there is something to run.
func (s *server) broadcast(p *post, amid func(context.Context, *server) error) (sending, error) {
	var out sending
	if err := s.toggleProfile(); err != nil {
		return out, err
	}
	commits, err := s.metric(commitsMetric)
	if err != nil {
		return out, err
	}
	out.wholePeakMiB = s.now().peakMiB
	s.forgetPeak()
	window := s.openWindow(p)
	bar := s.lab.bar("broadcast", 0)
	defer bar.end()
	event, err := s.api.Publish(s.lab.ctx, "news", newsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return out, err
	}
	out.accepted = time.Now()
	end := s.beside(amid)
	out.completion, err = s.completed(event.ID, func(b *fanfare.Broadcast) {
		bar.setOf(b.Counts.Settled(), b.Messages)
		if out.firstAttempts == 0 && b.Messages > 0 && b.Counts[fanfare.Pending] == 0 {
			out.firstAttempts = time.Since(b.Stages.Kept)
		}
	})
	if err = errors.Join(err, end()); err != nil {
		return out, err
	}
	if out.firstAttempts == 0 {
		out.firstAttempts = out.durable()
	}
	out.toll = window.close()
	if out.commits, err = s.metric(commitsMetric); err != nil {
		return out, err
	}
	out.commits -= commits
	out.wholePeakMiB = max(out.wholePeakMiB, out.peakMiB)
	return out, s.toggleProfile()
}

// beside runs what goes on beside something else, until end is called.
func (s *server) beside(amid func(context.Context, *server) error) (end func() error) {
	if amid == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(s.lab.ctx)
	over := make(chan error, 1)
	go func() { over <- amid(ctx, s) }()
	return func() error {
		cancel()
		return <-over
	}
}

// stagesInto adds the times of the stages, each from the acceptance of the event.
func (s *sending) stagesInto(r *Record) {
	at := func(name string, t time.Time) { r.stage(name, t.Sub(s.Stages.Kept)) }
	r.stage("received to 202 read", s.accepted.Sub(s.Stages.Received))
	at("kept to matched", s.Stages.Matched)
	at("kept to manifests durable (polled)", s.manifestsAt)
	at("kept to first outcome durable (polled)", s.firstAt)
	at("kept to last outcome durable (polled)", s.durableAt)
}

// trace looks up random recipients and checks what each trace says. It returns
// how long after the event they had their mail, in milliseconds.
func (s *server) trace(b *sending, people int, w *wrong) ([]float64, error) {
	random := rand.New(rand.NewPCG(s.lab.Seed, 1))
	var after []float64
	for range min(traced, people) {
		p := person(random.IntN(people))
		page, err := s.api.Deliveries(s.lab.ctx, b.Event, client.DeliveryQuery{Recipient: p.address()})
		if err != nil {
			return nil, fmt.Errorf("trace of %s: %w", p.address(), err)
		}
		if len(page.Deliveries) != 1 {
			w.unless(false, "the trace of %s shows %d deliveries", p.address(), len(page.Deliveries))
			continue
		}
		d := page.Deliveries[0]
		ok := d.State == "accepted" && len(d.Attempts) == 1 && d.Address == p.address() && d.Event == b.Event
		w.unless(ok, "the trace of %s is wrong: %+v", p.address(), d)
		if ok {
			after = append(after, millis(d.Attempts[0].At.Sub(b.Stages.Kept)))
		}
	}
	slices.Sort(after)
	return after, nil
}

// percentile of sorted values, 0 where there are none.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*p/100))]
}

// A plan is what one broadcast is sent to.
type plan struct {
	data  string // name of the server's folder
	lines string // file of the subscriptions
	subs  int    // in that file
	retry string
	post  postSpec
	args  []string // further ones of the server

	linesFor func(*post) (string, error)          // the file, where it hangs on the sink; nil: lines
	config   func(relay string) []byte            // nil: configuration
	prepare  func(*server) error                  // before the clock starts; nil: nothing
	amid     func(context.Context, *server) error // runs while the broadcast is under way, until its ctx ends; nil: nothing
	inspect  func(*server, *sending) error        // while the server still runs; nil: nothing
}

// send starts a server and a sink, imports, broadcasts, and ends both.
func (l *lab) send(p plan, r *Record, w *wrong) (*sending, *post, sink.Summary, error) {
	var sum sink.Summary
	box, err := l.openPost(p.post)
	if err != nil {
		return nil, nil, sum, err
	}
	s, err := l.serve(p.data, p.args...)
	if err != nil {
		return nil, nil, sum, err
	}
	if p.linesFor != nil {
		if p.lines, err = p.linesFor(box); err != nil {
			return nil, nil, sum, err
		}
	}
	document := configuration(box.addr, p.retry)
	if p.config != nil {
		document = p.config(box.addr)
	}
	put, took, err := s.fillWith(document, p.lines)
	if err != nil {
		return nil, nil, sum, err
	}
	r.stage("import", took)
	l.say("imported %s subscriptions, %s/s", thousands(put.Created), figure(float64(p.subs)/took.Seconds()))
	w.unless(put.Created == int64(p.subs) && put.Failed == 0, "%d of %d subscriptions were created, %d failed", put.Created, p.subs, put.Failed)
	if p.prepare != nil {
		if err := p.prepare(s); err != nil {
			return nil, nil, sum, err
		}
	}
	b, err := s.broadcast(box, p.amid)
	if err != nil {
		return nil, nil, sum, s.failed(err)
	}
	l.say("sent %s mails in %.2f s", thousands(b.Messages), b.durable().Seconds())
	if p.inspect != nil {
		if err := p.inspect(s, &b); err != nil {
			return nil, nil, sum, err
		}
	}
	if err := s.stop(); err != nil {
		return nil, nil, sum, err
	}
	sum, err = box.end()
	return &b, box, sum, err
}

// notifyPeople makes the file of n people who all have NotifyBC's filter.
func (l *lab) notifyPeople(n int) (path string, err error) {
	path = l.file("people.ndjson")
	_, err = writeLines(path, n, func(dst []byte, i int) []byte {
		return appendSubscription(dst, person(i), l.Seed, notifyFilter)
	})
	return path, err
}

// runBroadcast is N1.
func runBroadcast(l *lab, r *Record) error {
	n := l.size(1_000_000, 1000)
	r.Unit = "mails/s"
	r.Params["subscriptions"], r.Params["connections"], r.Params["sink"], r.Params["tls"] = n, connections, l.Sink, l.TLS
	before, err := l.blast(n)
	if err != nil {
		return err
	}
	l.say("raw sender before: %s mails/s", figure(before.perSecond))
	lines, err := l.notifyPeople(n)
	if err != nil {
		return err
	}
	var w wrong
	var after []float64
	b, p, sum, err := l.send(plan{data: "N1", lines: lines, subs: n, retry: "1s", inspect: func(s *server, b *sending) (err error) {
		after, err = s.trace(b, n, &w)
		return err
	}}, r, &w)
	if err != nil {
		return err
	}
	r.judge(b, sum, p, n, 0, &w)
	r.P50Millis, r.P99Millis = percentile(after, 50), percentile(after, 99)
	again, err := l.blast(n)
	if err != nil {
		return err
	}
	l.say("raw sender after: %s mails/s", figure(again.perSecond))
	r.limit((before.perSecond + again.perSecond) / 2)
	r.note("N5 %s before, %s after; CPU a mail: raw sender %.1f us, its sink %.1f us", figure(before.perSecond), figure(again.perSecond),
		(before.sender+again.sender)/2, (before.sinkMicro+again.sinkMicro)/2)
	if err := l.rule(r, n); err != nil {
		return err
	}
	return w.err()
}

// judge fills in what came of a broadcast to n people; others are mails that came
// to the sink beside it.
func (r *Record) judge(b *sending, sum sink.Summary, p *post, n, others int, w *wrong) {
	b.stagesInto(r)
	r.Value = float64(n) / b.durable().Seconds()
	r.take(b.toll)
	r.RSSMiB, r.CPUMicros = b.wholePeakMiB, micro(b.server, n)
	r.note("CPU a mail: server %.1f us, sink %.1f us; server at most %.0f MiB while it sent, %.0f MiB since its start",
		micro(b.server, n), micro(b.sink, n), b.peakMiB, b.wholePeakMiB)
	r.note("%s commits of %.1f outcomes, %.2f ms each", figure(b.commits), float64(n)/max(1, b.commits), millis(b.durable())/max(1, b.commits))
	w.unless(b.Counts[fanfare.Accepted] == int64(n), "%d of %d deliveries are accepted", b.Counts[fanfare.Accepted], n)
	if p.builtin {
		r.note("%d bytes a mail; first to last mail at the sink %.2f s", sum.Bytes/max(1, sum.Messages), sum.LastAt.Sub(sum.FirstAt).Seconds())
	}
	r.account(p, sum, n+others, w)
}

func micro(d time.Duration, n int) float64 { return float64(d.Microseconds()) / float64(n) }
