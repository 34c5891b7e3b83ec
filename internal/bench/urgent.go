package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// urgentGap is the rest between two events, so that each meets an idle server.
const urgentGap = 2 * time.Millisecond

// runUrgent is U1.
func runUrgent(l *lab, r *Record) error {
	t, err := l.oneByOne(r, "U1", func(s *server, _ int) error {
		_, err := s.api.Publish(l.ctx, "news", newsOfTheDay(), client.PublishOptions{Lane: "urgent"})
		return err
	})
	if err != nil {
		return err
	}
	r.P50Millis, r.P99Millis = percentile(t.fromAnswer, 50), percentile(t.fromAnswer, 99)
	r.Value = r.P99Millis
	r.note("202 to bytes at the sink: p50 %s, p99 %s, max %s ms (0: the mail was there before the answer was read)", figure(r.P50Millis), figure(r.P99Millis), figure(t.fromAnswer[len(t.fromAnswer)-1]))
	r.note("request to bytes at the sink: p50 %s, p99 %s, max %s ms", figure(percentile(t.fromPost, 50)), figure(percentile(t.fromPost, 99)), figure(t.fromPost[len(t.fromPost)-1]))
	r.note("request to 202: p50 %s, p99 %s, max %s ms", figure(percentile(t.answers, 50)), figure(percentile(t.answers, 99)), figure(t.answers[len(t.answers)-1]))
	return t.wrong.err()
}

// runMessages is U2. Every tenth message is to somebody new, who has to be made.
func runMessages(l *lab, r *Record) error {
	t, err := l.oneByOne(r, "U2", func(s *server, i int) error {
		to := person(0).address()
		if i%10 == 9 {
			to = person(i).address()
		}
		m, err := s.api.Send(l.ctx, client.MessageRequest{
			Channel: "email", To: to, Reference: "order", Data: json.RawMessage(`{"order":4711}`),
			Content: &client.MessageContent{Subject: "Order {{ event.order }}", Text: "Thank you, {{ subscriber.address }}."},
		}, client.SendOptions{Wait: 5 * time.Second})
		if err == nil && m.State != "accepted" {
			err = fmt.Errorf("message %s is %s", m.ID, m.State)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.P50Millis, r.P99Millis = percentile(t.fromPost, 50), percentile(t.fromPost, 99)
	r.Value = r.P99Millis
	r.note("request to bytes at the sink: p50 %s, p99 %s, max %s ms", figure(r.P50Millis), figure(r.P99Millis), figure(t.fromPost[len(t.fromPost)-1]))
	r.note("request to the answer that it was accepted: p50 %s, p99 %s, max %s ms", figure(percentile(t.answers, 50)), figure(percentile(t.answers, 99)), figure(t.answers[len(t.answers)-1]))
	return t.wrong.err()
}

// timings are sorted, in ms.
type timings struct {
	fromAnswer, fromPost, answers []float64
	wrong                         wrong
}

// oneByOne sends mails that each meet an idle server. The sink is in this
// process, so that one clock measures both ends.
func (l *lab) oneByOne(r *Record, name string, send func(s *server, i int) error) (*timings, error) {
	n := l.size(2000, 100)
	r.Unit = "ms"
	r.Params["mails"] = n
	came := make(chan time.Time, n)
	mailbox := sink.New(sink.Config{OnMessage: func(string, []string, []byte) { came <- time.Now() }})
	addr, err := mailbox.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go mailbox.Serve()    //nolint:errcheck // what goes wrong with it shows as a mail that does not come
	defer mailbox.Close() //nolint:errcheck // it keeps nothing
	lines := l.file("one.ndjson")
	if _, err := writeLines(lines, 1, func(dst []byte, i int) []byte { return appendSubscription(dst, person(i), l.Seed, notifyFilter) }); err != nil {
		return nil, err
	}
	s, err := l.serve(name)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.fill(addr.String(), lines); err != nil {
		return nil, err
	}
	t := &timings{}
	bar := l.bar(name, int64(n))
	defer bar.end()
	if err := s.toggleProfile(); err != nil {
		return nil, err
	}
	window := s.openWindow(nil)
	for i := range n {
		posted := time.Now()
		if err := send(s, i); err != nil {
			return nil, err
		}
		answered := time.Now()
		select {
		case at := <-came:
			t.fromAnswer = append(t.fromAnswer, millis(max(0, at.Sub(answered))))
			t.fromPost = append(t.fromPost, millis(at.Sub(posted)))
			t.answers = append(t.answers, millis(answered.Sub(posted)))
		case <-time.After(30 * time.Second):
			return nil, s.failed(errors.New("an urgent mail did not come"))
		case <-l.ctx.Done():
			return nil, l.ctx.Err()
		}
		bar.set(int64(i))
		if err := pause(l.ctx, urgentGap); err != nil {
			return nil, err
		}
	}
	took := window.close()
	if err := s.toggleProfile(); err != nil {
		return nil, err
	}
	if _, err := s.quiet(func(int64) {}); err != nil {
		return nil, err
	}
	slices.Sort(t.fromAnswer)
	slices.Sort(t.fromPost)
	slices.Sort(t.answers)
	r.take(took)
	r.CPUMicros = micro(took.server, n)
	seen := mailbox.Stats()
	r.Lost, r.Duplicates = int64(n)-seen.Unique, seen.Duplicates
	t.wrong.unless(r.Lost == 0 && r.Duplicates == 0, "%d lost, %d duplicates", r.Lost, r.Duplicates)
	return t, nil
}
