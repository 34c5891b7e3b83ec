package matching

import (
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// Rates of B10.
const (
	eventsPerSecond = 10_000  // a second
	addsPerSecond   = 100_000 // a second
	wantedEvery     = 100     // one event in this number matches alerts
)

// runLargeIndex is B10: memory and start of a server with ten million price alerts, and
// the latency of events while alerts are added.
func runLargeIndex(l *harness.Env, r *report.Record) error {
	n := l.Size(10_000_000, 10_000)
	r.Unit = "MiB"
	r.Params["subscriptions"], r.Params["people"] = n, n/loadgen.AlertsOfEach
	length := time.Duration(max(1, min(10, 10*l.Scale)) * float64(time.Second))
	q := newPriceAlerts(n, l.Seed, false)
	mailSink, err := l.OpenSink(harness.SinkOptions{})
	if err != nil {
		return err
	}
	s, err := l.StartServer("B10")
	if err != nil {
		return err
	}
	if _, err := s.API.Apply(l.Ctx, alertConfiguration(mailSink.Addr, "1s"), false); err != nil {
		return err
	}
	took, err := s.Populate(n, q.appendAlert)
	if err != nil {
		return err
	}
	r.AddStage("import", took)
	r.Note("imported %s subscriptions/s; afterwards resident %.0f MiB, at most %.0f MiB", report.Figure(float64(n)/took.Seconds()), s.Memory("VmRSS"), s.Used().PeakMiB)
	if err := s.Stop(); err != nil {
		return err
	}
	if s, err = l.StartServer("B10"); err != nil {
		return err
	}
	r.AddStage("start to ready", s.Ready)
	r.Value = s.Memory("VmRSS")
	r.Note("after the start resident %.0f MiB, at most %.0f MiB; %.2f us a subscription", r.Value, s.Used().PeakMiB, float64(s.Ready.Microseconds())/float64(n))

	window := s.OpenWindow(mailSink)
	var w report.Checks
	if err := measureBesideAdds(s, r, q, length, &w); err != nil {
		return err
	}
	harness.RecordUsage(r, window.Close())
	if l.DB == "" {
		r.Note("resident at the end %.0f MiB", s.Memory("VmRSS"))
	}
	if err := checkAlerts(s, q, &w); err != nil {
		return err
	}
	r.Note("one event in %d matches about ten alerts, sent by mail to the sink; the value is the resident memory after the start; p50 and p99 are of an event while subscriptions are added, from its intake until its manifest is durable", wantedEvery)
	return w.Err()
}

// measureBesideAdds posts events alone, and then while alerts are added.
func measureBesideAdds(s *harness.Server, r *report.Record, q *priceAlerts, length time.Duration, w *report.Checks) error {
	next := 0
	phase := func(name string) ([]float64, error) {
		var wanted []string
		from := next
		watch := s.WatchManifests()
		f, err := s.PublishSteadily("quote", eventsPerSecond, length, func(dst []byte, i int) []byte {
			symbol, price := q.quote(from + i)
			if i%wantedEvery != 0 {
				price = 0
			} else {
				wanted = append(wanted, fmt.Sprint("b10-", from+i))
			}
			return fmt.Appendf(dst, `{"id":"b10-%d","symbol":"%s","price":%v}`+"\n", from+i, loadgen.AppendSymbol(nil, symbol), price)
		})
		if err != nil {
			return nil, err
		}
		next += f.Posted
		if _, err := s.WaitIdle(func(int64) {}); err != nil {
			return nil, err
		}
		if err := watch.End(s); err != nil {
			return nil, err
		}
		all, err := s.Events(wanted)
		if err != nil {
			return nil, err
		}
		frozen, err := watch.UntilManifests(all)
		if err != nil {
			return nil, err
		}
		messages := int64(0)
		for i := range all {
			messages += all[i].Messages
		}
		r.Note("%s: %s events/s, of which %d match an alert, %d mails; from intake to a durable manifest p50 %s, p99 %s, longest %s ms; a request of %d events p50 %s, p99 %s ms", name,
			report.Figure(float64(f.Posted)/f.Took.Seconds()), len(wanted), messages, report.Figure(report.Percentile(frozen, 50)), report.Figure(report.Percentile(frozen, 99)), report.Figure(report.Percentile(frozen, 100)),
			f.Posted/max(1, len(f.Answers)), report.Figure(report.Percentile(f.Answers, 50)), report.Figure(report.Percentile(f.Answers, 99)))
		return frozen, nil
	}
	quiet, err := phase("without adds")
	if err != nil {
		return err
	}
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	adds := addSteadily(s, q, int(addsPerSecond*length.Seconds()))
	beside, err := phase("while adding")
	if err != nil {
		return err
	}
	added := <-adds
	if err := errors.Join(added.err, s.ToggleProfile()); err != nil {
		return err
	}
	r.P50Millis, r.P99Millis = report.Percentile(beside, 50), report.Percentile(beside, 99)
	r.Note("adds: %s subscriptions/s, %s in all; p99 while adding is %.2f times that without adds", report.Figure(float64(added.sum.Created)/added.took.Seconds()),
		report.Thousands(added.sum.Created), r.P99Millis/max(report.Percentile(quiet, 99), 1e-3))
	w.Require(added.sum.Created == int64(added.lines) && added.sum.Failed == 0, "%d of %d alerts were added, %d failed", added.sum.Created, added.lines, added.sum.Failed)
	return nil
}

// An adding is the result of adding alerts at a steady rate.
type adding struct {
	sum   client.PutSummary
	lines int
	took  time.Duration
	err   error
}

// addSteadily imports n alerts of new people in the background, at the rate of B10. No
// event has their symbol.
func addSteadily(s *harness.Server, q *priceAlerts, n int) <-chan adding {
	done := make(chan adding, 1)
	i, started := 0, time.Now()
	lines := &loadgen.LineReader{Next: func(dst []byte) []byte {
		if i == n {
			return dst
		}
		if early := time.Duration(float64(i)/addsPerSecond*float64(time.Second)) - time.Since(started); early > 0 {
			if harness.Pause(s.Env.Ctx, early) != nil {
				return dst // the request has ended as well
			}
		}
		p := loadgen.Person(q.n/loadgen.AlertsOfEach + i/loadgen.AlertsOfEach)
		dst = append(dst, `{"topic":"quote","channel":"email","to":"`...)
		dst = p.AppendAddress(dst)
		dst = fmt.Appendf(dst, `","rule":"above","params":{"symbol":"N%d","trigger":%d}}`+"\n", i%1000, i)
		i++
		return dst
	}}
	go func() {
		a := adding{lines: n}
		a.sum, a.err = s.API.ImportSubscriptions(s.Env.Ctx, lines, nil)
		a.took = time.Since(started)
		done <- a
	}()
	return done
}
