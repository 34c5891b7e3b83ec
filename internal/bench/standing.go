package bench

import (
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare/client"
)

// Of B10.
const (
	standingEvents = 10_000  // a second
	standingAdds   = 100_000 // a second
	wantedEvery    = 100     // one event in so many is for somebody
)

// runStanding is B10: what ten million price alerts take of one server, and whether
// more of them are felt by the events.
func runStanding(l *lab, r *Record) error {
	n := l.size(10_000_000, 10_000)
	r.Unit = "MiB"
	r.Params["subscriptions"], r.Params["people"] = n, n/alertsOfEach
	length := time.Duration(max(1, min(10, 10*l.Scale)) * float64(time.Second))
	q := newQuotes(n, l.Seed, false)
	box, err := l.openPost(postSpec{})
	if err != nil {
		return err
	}
	s, err := l.serve("B10")
	if err != nil {
		return err
	}
	if _, err := s.api.Apply(l.ctx, alertConfiguration(box.addr, "1s"), false); err != nil {
		return err
	}
	took, err := s.populate(n, q.appendAlert)
	if err != nil {
		return err
	}
	r.stage("import", took)
	r.note("%s subscriptions/s imported; resident %.0f MiB then, at most %.0f MiB", figure(float64(n)/took.Seconds()), s.memory("VmRSS"), s.now().peakMiB)
	if err := s.stop(); err != nil {
		return err
	}
	if s, err = l.serve("B10"); err != nil {
		return err
	}
	r.stage("start to ready", s.ready)
	r.Value = s.memory("VmRSS")
	r.note("after the start resident %.0f MiB, at most %.0f MiB; %.2f us a subscription", r.Value, s.now().peakMiB, float64(s.ready.Microseconds())/float64(n))

	window := s.openWindow(box)
	var w wrong
	if err := s.standBeside(r, q, length, &w); err != nil {
		return err
	}
	r.take(window.close())
	if l.DB == "" {
		r.note("resident at the end %.0f MiB", s.memory("VmRSS"))
	}
	if err := s.alertsAreThere(q, &w); err != nil {
		return err
	}
	r.note("one event in %d is for about ten alerts, by mail to the sink; value is what is resident after the start; p50 and p99 are of an event beside adds, from its intake until its manifest is durable", wantedEvery)
	return w.err()
}

// standBeside posts events alone, and then beside more alerts.
func (s *server) standBeside(r *Record, q *quotes, length time.Duration, w *wrong) error {
	next := 0
	phase := func(name string) ([]float64, error) {
		var wanted []string
		from := next
		watch := s.watchManifests()
		f, err := s.flow("quote", standingEvents, length, func(dst []byte, i int) []byte {
			symbol, price := q.quote(from + i)
			if i%wantedEvery != 0 {
				price = 0
			} else {
				wanted = append(wanted, fmt.Sprint("b10-", from+i))
			}
			return fmt.Appendf(dst, `{"id":"b10-%d","symbol":"%s","price":%v}`+"\n", from+i, appendSymbol(nil, symbol), price)
		})
		if err != nil {
			return nil, err
		}
		next += f.posted
		if _, err := s.quiet(func(int64) {}); err != nil {
			return nil, err
		}
		if err := watch.end(s); err != nil {
			return nil, err
		}
		all, err := s.broadcasts(wanted)
		if err != nil {
			return nil, err
		}
		frozen, err := watch.untilManifests(all)
		if err != nil {
			return nil, err
		}
		messages := int64(0)
		for i := range all {
			messages += all[i].Messages
		}
		r.note("%s: %s events/s, %d for somebody, %d mails; from intake to a durable manifest p50 %s, p99 %s, longest %s ms; a request of %d events p50 %s, p99 %s ms", name,
			figure(float64(f.posted)/f.took.Seconds()), len(wanted), messages, figure(percentile(frozen, 50)), figure(percentile(frozen, 99)), figure(percentile(frozen, 100)),
			f.posted/max(1, len(f.answers)), figure(percentile(f.answers, 50)), figure(percentile(f.answers, 99)))
		return frozen, nil
	}
	quiet, err := phase("quiet")
	if err != nil {
		return err
	}
	if err := s.toggleProfile(); err != nil {
		return err
	}
	adds := s.add(q, int(standingAdds*length.Seconds()))
	beside, err := phase("beside adds")
	if err != nil {
		return err
	}
	added := <-adds
	if err := errors.Join(added.err, s.toggleProfile()); err != nil {
		return err
	}
	r.P50Millis, r.P99Millis = percentile(beside, 50), percentile(beside, 99)
	r.note("adds: %s subscriptions/s, %s in all; p99 beside them is %.2f times the quiet one", figure(float64(added.sum.Created)/added.took.Seconds()),
		thousands(added.sum.Created), r.P99Millis/max(percentile(quiet, 99), 1e-3))
	w.unless(added.sum.Created == int64(added.lines) && added.sum.Failed == 0, "%d of %d alerts were added, %d failed", added.sum.Created, added.lines, added.sum.Failed)
	return nil
}

// An adding is alerts that come at a steady pace.
type adding struct {
	sum   client.PutSummary
	lines int
	took  time.Duration
	err   error
}

// add imports n alerts of new people in the background, at the pace of B10. Nobody
// quotes their symbol.
func (s *server) add(q *quotes, n int) <-chan adding {
	done := make(chan adding, 1)
	i, started := 0, time.Now()
	lines := &lineReader{next: func(dst []byte) []byte {
		if i == n {
			return dst
		}
		if early := time.Duration(float64(i)/standingAdds*float64(time.Second)) - time.Since(started); early > 0 {
			if pause(s.lab.ctx, early) != nil {
				return dst // the request is over as well
			}
		}
		p := person(q.n/alertsOfEach + i/alertsOfEach)
		dst = append(dst, `{"topic":"quote","channel":"email","to":"`...)
		dst = p.appendAddress(dst)
		dst = fmt.Appendf(dst, `","rule":"above","params":{"symbol":"N%d","trigger":%d}}`+"\n", i%1000, i)
		i++
		return dst
	}}
	go func() {
		a := adding{lines: n}
		a.sum, a.err = s.api.ImportSubscriptions(s.lab.ctx, lines, nil)
		a.took = time.Since(started)
		done <- a
	}()
	return done
}
