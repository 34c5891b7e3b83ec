package delivery

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// urgentGap is the pause between two events, so that each one meets an idle server.
const urgentGap = 2 * time.Millisecond

// RunUrgentEvents is U1.
func RunUrgentEvents(l *harness.Env, r *report.Record) error {
	t, err := oneByOne(l, r, "U1", func(s *harness.Server, _ int) error {
		_, err := s.API.Publish(l.Ctx, "news", loadgen.NewsOfTheDay(), client.PublishOptions{Lane: "urgent"})
		return err
	})
	if err != nil {
		return err
	}
	r.P50Millis, r.P99Millis = report.Percentile(t.fromAnswer, 50), report.Percentile(t.fromAnswer, 99)
	r.Value = r.P99Millis
	r.Note("202 to bytes at the sink: p50 %s, p99 %s, max %s ms (0: the email arrived before the response was read)", report.Figure(r.P50Millis), report.Figure(r.P99Millis), report.Figure(t.fromAnswer[len(t.fromAnswer)-1]))
	r.Note("request to bytes at the sink: p50 %s, p99 %s, max %s ms", report.Figure(report.Percentile(t.fromPost, 50)), report.Figure(report.Percentile(t.fromPost, 99)), report.Figure(t.fromPost[len(t.fromPost)-1]))
	r.Note("request to 202: p50 %s, p99 %s, max %s ms", report.Figure(report.Percentile(t.answers, 50)), report.Figure(report.Percentile(t.answers, 99)), report.Figure(t.answers[len(t.answers)-1]))
	return t.wrong.Err()
}

// RunUrgentMessages is U2. Every tenth message is to a new person, who must be created.
func RunUrgentMessages(l *harness.Env, r *report.Record) error {
	t, err := oneByOne(l, r, "U2", func(s *harness.Server, i int) error {
		to := loadgen.Person(0).Address()
		if i%10 == 9 {
			to = loadgen.Person(i).Address()
		}
		m, err := s.API.Send(l.Ctx, client.MessageRequest{
			Channel: "email", To: to, Reference: "order", Data: json.RawMessage(`{"order":4711}`),
			Content: &client.MessageContent{Subject: "Order {{ event.order }}", Text: "Thank you, {{ subscriber.address }}."},
		}, client.SendOptions{Wait: 5 * time.Second})
		if err == nil && m.State != "accepted" {
			err = fmt.Errorf("message %s has the state %s", m.ID, m.State)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.P50Millis, r.P99Millis = report.Percentile(t.fromPost, 50), report.Percentile(t.fromPost, 99)
	r.Value = r.P99Millis
	r.Note("request to bytes at the sink: p50 %s, p99 %s, max %s ms", report.Figure(r.P50Millis), report.Figure(r.P99Millis), report.Figure(t.fromPost[len(t.fromPost)-1]))
	r.Note("request to the response that the message was accepted: p50 %s, p99 %s, max %s ms", report.Figure(report.Percentile(t.answers, 50)), report.Figure(report.Percentile(t.answers, 99)), report.Figure(t.answers[len(t.answers)-1]))
	return t.wrong.Err()
}

// timings are sorted, in ms.
type timings struct {
	fromAnswer, fromPost, answers []float64
	wrong                         report.Checks
}

// oneByOne sends mails that each meet an idle server. The sink is in this process, so
// that one clock measures both ends.
func oneByOne(l *harness.Env, r *report.Record, name string, send func(s *harness.Server, i int) error) (*timings, error) {
	n := l.Size(2000, 100)
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
	lines := l.File("one.ndjson")
	if _, err := loadgen.WriteLines(lines, 1, func(dst []byte, i int) []byte {
		return loadgen.AppendSubscription(dst, loadgen.Person(i), l.Seed, loadgen.NotifyFilter)
	}); err != nil {
		return nil, err
	}
	s, err := l.StartServer(name)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.FillFor(addr.String(), lines); err != nil {
		return nil, err
	}
	t := &timings{}
	bar := l.Progress(name, int64(n))
	defer bar.End()
	if err := s.ToggleProfile(); err != nil {
		return nil, err
	}
	window := s.OpenWindow(nil)
	for i := range n {
		posted := time.Now()
		if err := send(s, i); err != nil {
			return nil, err
		}
		answered := time.Now()
		select {
		case at := <-came:
			t.fromAnswer = append(t.fromAnswer, report.Millis(max(0, at.Sub(answered))))
			t.fromPost = append(t.fromPost, report.Millis(at.Sub(posted)))
			t.answers = append(t.answers, report.Millis(answered.Sub(posted)))
		case <-time.After(30 * time.Second):
			return nil, s.WithLog(errors.New("an urgent mail did not arrive"))
		case <-l.Ctx.Done():
			return nil, l.Ctx.Err()
		}
		bar.Set(int64(i))
		if err := harness.Pause(l.Ctx, urgentGap); err != nil {
			return nil, err
		}
	}
	took := window.Close()
	if err := s.ToggleProfile(); err != nil {
		return nil, err
	}
	if _, err := s.WaitIdle(func(int64) {}); err != nil {
		return nil, err
	}
	slices.Sort(t.fromAnswer)
	slices.Sort(t.fromPost)
	slices.Sort(t.answers)
	harness.RecordUsage(r, took)
	r.CPUMicros = report.MicrosPer(took.Server, n)
	seen := mailbox.Stats()
	r.Lost, r.Duplicates = int64(n)-seen.Unique, seen.Duplicates
	t.wrong.Require(r.Lost == 0 && r.Duplicates == 0, "%d lost, %d duplicates", r.Lost, r.Duplicates)
	return t, nil
}
