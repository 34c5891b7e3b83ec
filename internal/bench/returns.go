package bench

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
	"fanfare.dev/fanfare/internal/sink"
)

// bouncesOf is the share of people whose mail comes back: one in so many.
const bouncesOf = 5

// A mailroom is the sink of RB1, in this process, so that one clock says when a mail
// came and when a bounce was answered.
type mailroom struct {
	*sink.Server
	addr string

	mu     sync.Mutex
	second bool           // of the two broadcasts
	from   map[int]string // of the first: to where it comes back
	came   []time.Time    // of the second, by person; zero: it did not
	twice  int64
}

func openMailroom(people int) (*mailroom, error) {
	m := &mailroom{from: map[int]string{}, came: make([]time.Time, people)}
	m.Server = sink.New(sink.Config{OnMessage: m.take})
	addr, err := m.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m.addr = addr.String()
	go m.Serve() //nolint:errcheck // what goes wrong with it shows as a mail that does not come
	return m, nil
}

func (m *mailroom) take(from string, to []string, _ []byte) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, address := range to {
		p, ok := parsePerson([]byte(address))
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

// next lets the second broadcast begin, and returns the return addresses of the
// first.
func (m *mailroom) next() map[int]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.second = true
	return m.from
}

// returnsConfiguration is a channel whose mail comes back here, at a rate at which
// the second broadcast takes as long as the bounces of the first.
func returnsConfiguration(relay string) []byte {
	w := way{driver: fmt.Sprintf("driver: smtp, relay: %q, %s, returns: %s", relay, senderField, bounceDomain), retry: "1s", rate: fmt.Sprintf("%d/s", bouncesOf*bouncesASecond)}
	return append(w.configuration(service), "  first: {subject: \"{{ event.title }}\", text: \"For {{ subscriber.address }}\"}\n"...)
}

// runReturns is RB1.
func runReturns(l *lab, r *Record) error {
	n := l.size(100_000, 1000)
	people := bouncesOf * n
	r.Unit = "bounces/s"
	r.Params["bounces"], r.Params["people"], r.Params["rate"], r.Params["peers"] = n, people, bouncesASecond, bouncePeersHere()
	room, err := openMailroom(people)
	if err != nil {
		return err
	}
	defer room.Close() //nolint:errcheck // it keeps nothing
	lines := l.file("returns.ndjson")
	_, err = writeLines(lines, people, func(dst []byte, i int) []byte {
		if i%bouncesOf == 0 {
			dst = fmt.Appendf(dst, `{"topic":"first","channel":"email","to":%q}`+"\n", person(i).address())
		}
		return fmt.Appendf(dst, `{"topic":"news","channel":"email","to":%q,"data":{"link":"x"}}`+"\n", person(i).address())
	})
	if err != nil {
		return err
	}
	s, err := l.serve("RB1", "--inbound", "127.0.0.1:0", "--inbound-domains", bounceDomain)
	if err != nil {
		return err
	}
	at, err := s.mailTaken()
	if err != nil {
		return err
	}
	document := []byte(strings.Replace(string(returnsConfiguration(room.addr)), "topics:\n", "topics:\n  first: {template: first}\n", 1))
	sum, took, err := s.fillWith(document, lines)
	if err != nil {
		return err
	}
	r.stage("import", took)
	var w wrong
	w.unless(sum.Created == int64(people+n) && sum.Failed == 0, "%d of %d subscriptions were created, %d failed", sum.Created, people+n, sum.Failed)
	first, err := s.toAll("first")
	if err != nil {
		return err
	}
	w.unless(first.Counts == fanfare.Counts{fanfare.Accepted: int64(n)}, "the first broadcast to %d people has %v", n, first.Counts)
	b := newBouncer(at, room.next())
	w.unless(len(b.returnTo) == n, "%d mails to %d people came", len(b.returnTo), n)

	news, used, err := s.bounceAmid(b)
	if err != nil {
		return err
	}
	r.take(used)
	r.Value = float64(b.tries) / b.took.Seconds()
	r.P50Millis, r.P99Millis = percentile(b.waits, 50), percentile(b.waits, 99)
	r.note("end of a bounce to its 250, when all that follows is kept: p50 %s, p99 %s, longest %s ms; %d bounces, of which %d came twice, in %s s",
		figure(r.P50Millis), figure(r.P99Millis), figure(percentile(b.waits, 100)), n, b.tries-n, figure(b.took.Seconds()))
	if err := s.holdReturns(first.Event, b, &w); err != nil {
		return err
	}
	r.judgeReturns(l, &news, room, b, &w)
	return w.err()
}

// mailTaken returns where mail comes in.
func (s *server) mailTaken() (at string, err error) {
	ctx, cancel := context.WithTimeout(s.lab.ctx, time.Minute)
	defer cancel()
	err = s.tail(ctx, func(line string) bool {
		_, rest, found := strings.Cut(line, `msg="mail is taken" listen=`)
		at, _, _ = strings.Cut(rest, " ")
		return found
	})
	return at, err
}

// toAll publishes an event and waits until all that it set off is settled.
func (s *server) toAll(topic string) (completion, error) {
	event, err := s.api.Publish(s.lab.ctx, topic, newsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return completion{}, err
	}
	bar := s.lab.bar(topic, 0)
	defer bar.end()
	return s.completed(event.ID, func(b *fanfare.Broadcast) { bar.setOf(b.Counts.Settled(), b.Messages) })
}

// bounceAmid lets the second broadcast run, and has the mail of the first come back
// meanwhile.
func (s *server) bounceAmid(b *bouncer) (news completion, used toll, err error) {
	if err := s.toggleProfile(); err != nil {
		return news, used, err
	}
	s.forgetPeak()
	window := s.openWindow(nil)
	var bringing sync.WaitGroup
	var broken error
	bringing.Go(func() { broken = b.bring(s.lab.ctx, s.lab.Seed, func(int) {}) })
	news, err = s.toAll("news")
	bringing.Wait()
	used = window.close()
	return news, used, errors.Join(err, broken, s.toggleProfile())
}

// holdReturns compares what the server has of the mails that came back: each failed,
// by one entry, and its reader is suppressed.
func (s *server) holdReturns(event string, b *bouncer, w *wrong) error {
	n := int64(len(b.returnTo))
	first, err := s.api.Event(s.lab.ctx, event)
	if err != nil {
		return err
	}
	w.unless(first.Counts == fanfare.Counts{fanfare.Failed: n}, "of %d mails that came back the counts are %v", n, first.Counts)
	var seen, strange int64
	for d, err := range s.api.DeliveriesOf(s.lab.ctx, event, client.DeliveryQuery{}) {
		if err != nil {
			return err
		}
		if seen++; d.State != "failed" || len(d.Attempts) != 2 || !strings.Contains(d.Attempts[1].Text, bounceDiagnosis) {
			strange++
		}
	}
	w.unless(seen == n && strange == 0, "of %d mails that came back %d are in the record, %d of them with something else than one bounce", n, seen, strange)
	for name, want := range map[string]float64{
		`fanfare_returns_total{class="invalid",kind="failed"}`: float64(b.tries),
		"fanfare_returns_unknown_total":                        0,
		`fanfare_suppressions{reason="hard_bounce"}`:           float64(n),
	} {
		got, err := s.metric(name)
		if err != nil {
			return err
		}
		w.unless(got == want, "%s is %v, want %v", name, got, want)
	}
	return nil
}

// judgeReturns fills in what came of the second broadcast at the sink. That nobody is
// mailed too late is a promise where the machine keeps up; the figure stands in any case.
func (r *Record) judgeReturns(l *lab, news *completion, room *mailroom, b *bouncer, w *wrong) {
	room.mu.Lock()
	defer room.mu.Unlock()
	var mailed, before, tooLate, amid int64
	var after []float64
	for who, came := range room.came {
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
			after = append(after, millis(late))
			if late > bouncePromise {
				tooLate++
			}
		}
	}
	slices.Sort(after)
	r.Duplicates = room.twice
	people := int64(len(room.came))
	w.unless(news.Messages == people && news.Counts[fanfare.Accepted]+news.Counts[fanfare.Suppressed] == people, "the broadcast to %d people has %v", people, news.Counts)
	w.unless(news.Counts[fanfare.Accepted] == mailed, "%d mails were accepted and %d came", news.Counts[fanfare.Accepted], mailed)
	w.unless(r.Lost == 0, "%d people whose mail did not come back got none of the broadcast", r.Lost)
	w.unless(r.Duplicates == 0, "%d mails too many", r.Duplicates)
	w.unless(tooLate == 0 || l.Scale < 1, "%d people were mailed later than %v after the 250 of their bounce", tooLate, bouncePromise)
	r.note("%s %% of the bounces were answered while the broadcast to %s was under way, which took %s s", figure(100*float64(amid)/float64(len(b.taken))), thousands(people), figure(news.durable().Seconds()))
	r.note("of those whose mail came back, %s had the broadcast before, %s were suppressed in it, %s had it after the 250, the latest by %s ms; later than %v: %d",
		thousands(before), thousands(news.Counts[fanfare.Suppressed]), thousands(int64(len(after))), figure(percentile(after, 100)), bouncePromise, tooLate)
}
