package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// bouncesOf is the number of people of whom one has a bounce.
const bouncesOf = 5

// A returnSink is the sink of RB1. It runs in this process, so that the same clock times
// the mails and the answers to bounces.
type returnSink struct {
	*sink.Server
	addr string

	mu     sync.Mutex
	second bool           // of the two broadcasts
	from   map[int]string // of the first: to where it comes back
	came   []time.Time    // of the second, by person; zero: it did not
	twice  int64
}

func openReturnSink(people int) (*returnSink, error) {
	m := &returnSink{from: map[int]string{}, came: make([]time.Time, people)}
	m.Server = sink.New(sink.Config{OnMessage: m.take})
	addr, err := m.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m.addr = addr.String()
	go m.Serve() //nolint:errcheck // what goes wrong with it shows as a mail that does not come
	return m, nil
}

func (m *returnSink) take(from string, to []string, _ []byte) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, address := range to {
		p, ok := loadgen.ParsePerson([]byte(address))
		switch {
		case !ok || int(p) >= len(m.came):
			m.twice++ // nobody asked for it
		case !m.second:
			m.from[int(p)] = from
		case m.came[p].IsZero():
			m.came[p] = now
		default:
			m.twice++
		}
	}
}

// next begins the second broadcast and returns the return addresses of the first.
func (m *returnSink) next() map[int]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.second = true
	return m.from
}

// returnsConfiguration returns the document with a channel whose bounces come to the
// server. Its rate is such that the second broadcast takes as long as the bounces of the
// first.
func returnsConfiguration(relay string) []byte {
	w := loadgen.Channel{Driver: fmt.Sprintf("driver: smtp, relay: %q, %s, returns: %s", relay, loadgen.SenderField, bounceDomain), Retry: "1s", Rate: fmt.Sprintf("%d/s", bouncesOf*bouncesASecond)}
	return append(w.Configuration(loadgen.Service), "  first: {subject: \"{{ event.title }}\", text: \"For {{ subscriber.address }}\"}\n"...)
}

// RunReturns is RB1.
func RunReturns(l *harness.Env, r *report.Record) error {
	n := l.Size(100_000, 1000)
	people := bouncesOf * n
	r.Unit = "bounces/s"
	r.Params["bounces"], r.Params["people"], r.Params["rate"], r.Params["peers"] = n, people, bouncesASecond, bouncePeerCount()
	mails, err := openReturnSink(people)
	if err != nil {
		return err
	}
	defer mails.Close() //nolint:errcheck // it keeps nothing
	lines := l.File("returns.ndjson")
	_, err = loadgen.WriteLines(lines, people, func(dst []byte, i int) []byte {
		if i%bouncesOf == 0 {
			dst = fmt.Appendf(dst, `{"topic":"first","channel":"email","to":%q}`+"\n", loadgen.Person(i).Address())
		}
		return fmt.Appendf(dst, `{"topic":"news","channel":"email","to":%q,"data":{"link":"x"}}`+"\n", loadgen.Person(i).Address())
	})
	if err != nil {
		return err
	}
	s, err := l.StartServer("RB1", "--inbound", "127.0.0.1:0", "--inbound-domains", bounceDomain)
	if err != nil {
		return err
	}
	at, err := inboundAddress(s)
	if err != nil {
		return err
	}
	document := []byte(strings.Replace(string(returnsConfiguration(mails.addr)), "topics:\n", "topics:\n  first: {template: first}\n", 1))
	sum, took, err := s.Fill(document, lines)
	if err != nil {
		return err
	}
	r.AddStage("import", took)
	var w report.Checks
	w.Require(sum.Created == int64(people+n) && sum.Failed == 0, "%d of %d subscriptions were created, %d failed", sum.Created, people+n, sum.Failed)
	first, err := toAll(s, "first")
	if err != nil {
		return err
	}
	w.Require(first.Counts == fanfare.Counts{fanfare.Accepted: int64(n)}, "the first broadcast to %d people has %v", n, first.Counts)
	b := newBounceSender(at, mails.next())
	w.Require(len(b.returnTo) == n, "%d mails for %d people arrived", len(b.returnTo), n)

	news, used, err := bounceDuringBroadcast(s, b)
	if err != nil {
		return err
	}
	harness.RecordUsage(r, used)
	r.Value = float64(b.tries) / b.took.Seconds()
	r.P50Millis, r.P99Millis = report.Percentile(b.waits, 50), report.Percentile(b.waits, 99)
	r.Note("from the end of a bounce to the reply 250, which is sent once all effects of the bounce are durable: p50 %s, p99 %s, longest %s ms; %d bounces, of which %d were sent twice, in %s s",
		report.Figure(r.P50Millis), report.Figure(r.P99Millis), report.Figure(report.Percentile(b.waits, 100)), n, b.tries-n, report.Figure(b.took.Seconds()))
	if err := checkReturns(s, first.Event, b, &w); err != nil {
		return err
	}
	judgeReturns(r, l, &news, mails, b, &w)
	return w.Err()
}

// inboundAddress returns the address at which the server receives mail.
func inboundAddress(s *harness.Server) (at string, err error) {
	ctx, cancel := context.WithTimeout(s.Env.Ctx, time.Minute)
	defer cancel()
	err = s.WaitForLog(ctx, func(line string) bool {
		_, rest, found := strings.Cut(line, " listen=")
		at, _, _ = strings.Cut(rest, " ")
		return found && strings.Contains(rest, " domains=")
	})
	return at, err
}

// toAll publishes an event and waits until all of its deliveries are settled.
func toAll(s *harness.Server, topic string) (harness.Completion, error) {
	event, err := s.API.Publish(s.Env.Ctx, topic, loadgen.NewsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return harness.Completion{}, err
	}
	bar := s.Env.Progress(topic, 0)
	defer bar.End()
	return s.WaitCompleted(event.ID, func(b *fanfare.Broadcast) { bar.SetOf(b.Counts.Settled(), b.Messages) })
}

// bounceDuringBroadcast sends the second broadcast and, at the same time, the bounces of
// the first.
func bounceDuringBroadcast(s *harness.Server, b *bounceSender) (news harness.Completion, used harness.WindowUsage, err error) {
	if err := s.ToggleProfile(); err != nil {
		return news, used, err
	}
	s.ResetPeak()
	window := s.OpenWindow(nil)
	var bringing sync.WaitGroup
	var broken error
	bringing.Go(func() { broken = b.sendAll(s.Env.Ctx, s.Env.Seed, func(int) {}) })
	news, err = toAll(s, "news")
	bringing.Wait()
	used = window.Close()
	return news, used, errors.Join(err, broken, s.ToggleProfile())
}

// checkReturns checks that each bounced mail has failed by one entry, and that its
// recipient is suppressed.
func checkReturns(s *harness.Server, event string, b *bounceSender, w *report.Checks) error {
	n := int64(len(b.returnTo))
	first, err := s.API.Event(s.Env.Ctx, event)
	if err != nil {
		return err
	}
	w.Require(first.Counts == fanfare.Counts{fanfare.Failed: n}, "%d mails bounced, but the counts are %v", n, first.Counts)
	var seen, strange int64
	for d, err := range s.API.DeliveriesOf(s.Env.Ctx, event, client.DeliveryQuery{}) {
		if err != nil {
			return err
		}
		if seen++; d.State != "failed" || len(d.Attempts) != 2 || !strings.Contains(d.Attempts[1].Text, bounceDiagnosis) {
			strange++
		}
	}
	w.Require(seen == n && strange == 0, "%d mails bounced; the list has %d of them, %d without exactly one bounce", n, seen, strange)
	for name, want := range map[string]float64{
		`fanfare_returns_total{class="invalid",kind="failed"}`: float64(b.tries),
		"fanfare_returns_unknown_total":                        0,
		`fanfare_suppressions{reason="hard_bounce"}`:           float64(n),
	} {
		got, err := s.Metric(name)
		if err != nil {
			return err
		}
		w.Require(got == want, "%s is %v, want %v", name, got, want)
	}
	return nil
}

// judgeReturns records what arrived of the second broadcast at the sink. A mail that is
// too late fails the run in full size alone, since a small run ends before the promise.
func judgeReturns(r *report.Record, l *harness.Env, news *harness.Completion, mails *returnSink, b *bounceSender, w *report.Checks) {
	mails.mu.Lock()
	defer mails.mu.Unlock()
	var mailed, before, tooLate, amid int64
	var after []float64
	for who, came := range mails.came {
		if !came.IsZero() {
			mailed++
		}
		taken := b.taken[who]
		if taken == nil {
			if came.IsZero() {
				r.Lost++
			}
			continue
		}
		answered := time.Unix(0, taken.Load())
		if answered.Before(news.Stages.Completed) {
			amid++
		}
		switch late := came.Sub(answered); {
		case came.IsZero():
		case late <= 0:
			before++
		default:
			after = append(after, report.Millis(late))
			if late > bouncePromise {
				tooLate++
			}
		}
	}
	slices.Sort(after)
	r.Duplicates = mails.twice
	people := int64(len(mails.came))
	w.Require(news.Messages == people && news.Counts[fanfare.Accepted]+news.Counts[fanfare.Suppressed] == people, "the broadcast to %d people has %v", people, news.Counts)
	w.Require(news.Counts[fanfare.Accepted] == mailed, "%d mails were accepted and %d arrived", news.Counts[fanfare.Accepted], mailed)
	w.Require(r.Lost == 0, "%d people whose mail did not bounce did not get the broadcast", r.Lost)
	w.Require(r.Duplicates == 0, "%d mails arrived more than once", r.Duplicates)
	w.Require(tooLate == 0 || l.Scale < 1, "%d people got a mail later than %v after the 250 of their bounce", tooLate, bouncePromise)
	r.Note("%s %% of the bounces got their reply during the broadcast to %s people, which took %s s", report.Figure(100*float64(amid)/float64(len(b.taken))), report.Thousands(people), report.Figure(news.Durable().Seconds()))
	r.Note("of the people whose mail bounced, %s got the broadcast before the bounce, %s were suppressed in it, %s got it after the 250, at most %s ms later; later than %v: %d",
		report.Thousands(before), report.Thousands(news.Counts[fanfare.Suppressed]), report.Thousands(int64(len(after))), report.Figure(report.Percentile(after, 100)), bouncePromise, tooLate)
}
