package bench

import (
	"errors"
	"slices"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// urgentGap is the rest between two events, so that each meets an idle server.
const urgentGap = 2 * time.Millisecond

// runUrgent is U1. The sink is in this process, so that one clock measures both
// ends.
func runUrgent(l *lab, r *Record) error {
	n := l.size(2000, 100)
	r.Unit = "ms"
	r.Params["events"] = n
	came := make(chan time.Time, n)
	mailbox := sink.New(sink.Config{OnMessage: func(string, []string, []byte) { came <- time.Now() }})
	addr, err := mailbox.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	go mailbox.Serve()    //nolint:errcheck // what goes wrong with it shows as a mail that does not come
	defer mailbox.Close() //nolint:errcheck // it keeps nothing
	lines := l.file("one.ndjson")
	if _, err := writeLines(lines, 1, func(dst []byte, i int) []byte { return appendSubscription(dst, person(i), l.Seed, notifyFilter) }); err != nil {
		return err
	}
	s, err := l.serve("U1")
	if err != nil {
		return err
	}
	if _, _, err := s.fill(addr.String(), "1s", lines); err != nil {
		return err
	}
	var fromAnswer, fromPost, answers []float64
	bar := l.bar("urgent", int64(n))
	defer bar.end()
	if err := s.toggleProfile(); err != nil {
		return err
	}
	window := s.openWindow(nil)
	for i := range n {
		posted := time.Now()
		if _, err := s.api.Publish(l.ctx, "news", newsOfTheDay(), client.PublishOptions{Lane: "urgent"}); err != nil {
			return err
		}
		answered := time.Now()
		select {
		case at := <-came:
			fromAnswer = append(fromAnswer, millis(max(0, at.Sub(answered))))
			fromPost = append(fromPost, millis(at.Sub(posted)))
			answers = append(answers, millis(answered.Sub(posted)))
		case <-time.After(30 * time.Second):
			return s.failed(errors.New("an urgent mail did not come"))
		case <-l.ctx.Done():
			return l.ctx.Err()
		}
		bar.set(int64(i))
		if err := pause(l.ctx, urgentGap); err != nil {
			return err
		}
	}
	took := window.close()
	if err := s.toggleProfile(); err != nil {
		return err
	}
	if _, err := s.quiet(func(int64) {}); err != nil {
		return err
	}
	slices.Sort(fromAnswer)
	slices.Sort(fromPost)
	slices.Sort(answers)
	r.P50Millis, r.P99Millis = percentile(fromAnswer, 50), percentile(fromAnswer, 99)
	r.Value = r.P99Millis
	r.take(took)
	r.note("202 to bytes at the sink: p50 %s, p99 %s, max %s ms (0: the mail was there before the answer was read)", figure(r.P50Millis), figure(r.P99Millis), figure(fromAnswer[n-1]))
	r.note("request to bytes at the sink: p50 %s, p99 %s, max %s ms", figure(percentile(fromPost, 50)), figure(percentile(fromPost, 99)), figure(fromPost[n-1]))
	r.note("request to 202: p50 %s, p99 %s, max %s ms", figure(percentile(answers, 50)), figure(percentile(answers, 99)), figure(answers[n-1]))
	seen := mailbox.Stats()
	r.Lost, r.Duplicates = int64(n)-seen.Unique, seen.Duplicates
	var w wrong
	w.unless(r.Lost == 0 && r.Duplicates == 0, "%d lost, %d duplicates", r.Lost, r.Duplicates)
	return w.err()
}
