package intake

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
)

// textOf returns a line whose event data has size characters.
func textOf(size int) []byte {
	return []byte(`{"text":"` + strings.Repeat("x", max(1, size-len(`{"text":""}`))) + "\"}\n")
}

// An eventIntake is a server with one subscription, which matches none of the events.
type eventIntake struct {
	*harness.Server
	bare string // URL of the bare handler
	http *harness.Process
	used harness.WindowUsage // while it received events
	kept []string            // rates of the bare handler, by point
}

func openEventIntake(l *harness.Env, data string) (*eventIntake, error) {
	s, err := l.StartServer(data)
	if err != nil {
		return nil, err
	}
	if _, err := s.API.Apply(l.Ctx, plainConfiguration(), false); err != nil {
		return nil, err
	}
	if _, err := s.API.PutSubscription(l.Ctx, client.Subscription{Topic: "news", Channel: "email", To: loadgen.Person(0).Address(), Filter: "event.text == 'y'"}); err != nil {
		return nil, err
	}
	c, url, err := rawlimit.BareHTTP(l)
	return &eventIntake{Server: s, bare: url, http: c}, err
}

// publish sends the same batch a number of times, each after the answer to the one
// before, and returns how many events the server stored per second.
func (in *eventIntake) publish(batches, batch int, body []byte, w *report.Checks) (perSecond float64, err error) {
	started := time.Now()
	window := in.OpenWindow(nil)
	kept := int64(0)
	for range batches {
		sum, err := in.API.PublishLines(in.Env.Ctx, "news", bytes.NewReader(body), client.PublishOptions{}, nil, nil)
		if err != nil {
			return 0, in.WithLog(err)
		}
		kept += sum.Accepted
	}
	rate := float64(batches*batch) / time.Since(started).Seconds()
	in.used.Add(window.Close())
	w.Require(kept == int64(batches*batch), "%d of %d events were accepted", kept, batches*batch)
	_, err = in.WaitIdle(func(int64) {})
	return rate, err
}

// measure adds the point for one size of batches and events.
func (in *eventIntake) measure(r *report.Record, at string, batches, batch, size int, w *report.Checks) error {
	body := bytes.Repeat(textOf(size), batch)
	raw, err := rawlimit.RawEvents(in.Env, batches, batch, size)
	if err != nil {
		return err
	}
	bare, err := in.bareBatches(batches, batch, body)
	if err != nil {
		return err
	}
	ours, err := in.publish(batches, batch, body, w)
	if err != nil {
		return err
	}
	r.AddPoint(report.Point{At: at, Value: ours, Limit: raw})
	in.kept = append(in.kept, report.Figure(bare))
	return nil
}

// bareBatches returns the rate of a bare HTTP handler for the same requests.
func (in *eventIntake) bareBatches(batches, batch int, body []byte) (perSecond float64, err error) {
	h := loadgen.HTTPLoad{URL: in.bare, Path: "/keep", Connections: 1, Body: func(dst []byte, _ int) []byte { return append(dst, body...) }}
	b, err := h.Run(in.Env.Ctx, batches, func(int64) {})
	return b.PerSecond * float64(batch), err
}

// finish ends the run and makes a point its value.
func (in *eventIntake) finish(r *report.Record, at string) error {
	harness.RecordUsage(r, in.used)
	r.Note("a bare HTTP handler that stores the same bodies reaches %s events/s", strings.Join(in.kept, ", "))
	if err := in.http.Wait(); err != nil {
		return err
	}
	return r.UsePoint(at)
}

// RunEventSizes is E5.
func RunEventSizes(l *harness.Env, r *report.Record) error {
	const batches = 10
	batch := l.Size(10_000, 100)
	r.Unit = "events/s"
	r.Params["batch"], r.Params["batches"] = batch, batches
	in, err := openEventIntake(l, "E5")
	if err != nil {
		return err
	}
	var w report.Checks
	for _, size := range []int{25, 50, 100, 250, 500, 1000, 2000, 5000} {
		if err := in.measure(r, fmt.Sprintf("%d chars", size), batches, batch, size, &w); err != nil {
			return err
		}
	}
	if err := in.finish(r, "250 chars"); err != nil {
		return err
	}
	r.Note("value and limit are those of 250 chars; a batch is one NDJSON request of %s events; the next one is sent after its response; the limit is raw NATS publish of the same bytes in groups of the same size", report.Thousands(int64(batch)))
	return w.Err()
}

// RunEventBatches is E6.
func RunEventBatches(l *harness.Env, r *report.Record) error {
	const size = 250
	r.Unit = "events/s"
	r.Params["size"] = size
	in, err := openEventIntake(l, "E6")
	if err != nil {
		return err
	}
	var w report.Checks
	for _, batch := range []int{1, 10, 100, 1000, 10_000} {
		batches := max(1, min(l.Size(5000, 50), l.Size(100_000, 1000)/batch))
		if err := in.measure(r, fmt.Sprintf("batch of %s", report.Thousands(int64(batch))), batches, batch, size, &w); err != nil {
			return err
		}
	}
	if err := in.finish(r, "batch of 10,000"); err != nil {
		return err
	}
	r.Note("value and limit are those of the batch of 10,000; batches are NDJSON requests one after the other; the limit is raw NATS publish of the same bytes in groups of the same size")
	r.CompareShape(report.Rises)
	return w.Err()
}
