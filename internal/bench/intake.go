package bench

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare/client"
)

// textOf returns a line whose event data has size characters.
func textOf(size int) []byte {
	return []byte(`{"text":"` + strings.Repeat("x", max(1, size-len(`{"text":""}`))) + "\"}\n")
}

// An intake is a server that takes events which one subscription is held
// against and does not want.
type intake struct {
	*server
	bare string // URL of a handler that only keeps
	http *child
	used toll     // while it took events
	kept []string // what the bare handler came to, by point
}

func (l *lab) openIntake(data string) (*intake, error) {
	s, err := l.serve(data)
	if err != nil {
		return nil, err
	}
	if _, err := s.api.Apply(l.ctx, plainConfiguration(), false); err != nil {
		return nil, err
	}
	if _, err := s.api.PutSubscription(l.ctx, client.Subscription{Topic: "news", Channel: "email", To: person(0).address(), Filter: "event.text == 'y'"}); err != nil {
		return nil, err
	}
	c, url, err := l.bareHTTP()
	return &intake{server: s, bare: url, http: c}, err
}

// take sends the same batch a number of times, each when the one before was
// answered, and returns how many events were kept in a second.
func (in *intake) take(batches, batch int, body []byte, w *wrong) (perSecond float64, err error) {
	started := time.Now()
	window := in.openWindow(nil)
	kept := int64(0)
	for range batches {
		sum, err := in.api.PublishLines(in.lab.ctx, "news", bytes.NewReader(body), client.PublishOptions{}, nil, nil)
		if err != nil {
			return 0, in.failed(err)
		}
		kept += sum.Accepted
	}
	rate := float64(batches*batch) / time.Since(started).Seconds()
	in.used.add(window.close())
	w.unless(kept == int64(batches*batch), "%d of %d events were kept", kept, batches*batch)
	_, err = in.quiet(func(int64) {})
	return rate, err
}

// measure adds the point of one way to cut the events.
func (in *intake) measure(r *Record, at string, batches, batch, size int, w *wrong) error {
	body := bytes.Repeat(textOf(size), batch)
	raw, err := in.lab.rawEvents(batches, batch, size)
	if err != nil {
		return err
	}
	bare, err := in.bareBatches(batches, batch, body)
	if err != nil {
		return err
	}
	ours, err := in.take(batches, batch, body, w)
	if err != nil {
		return err
	}
	r.point(Point{At: at, Value: ours, Limit: raw})
	in.kept = append(in.kept, figure(bare))
	return nil
}

// bareBatches is what a handler with nothing behind it keeps of the same.
func (in *intake) bareBatches(batches, batch int, body []byte) (perSecond float64, err error) {
	h := hammer{url: in.bare, path: "/keep", connections: 1, body: func(dst []byte, _ int) []byte { return append(dst, body...) }}
	b, err := h.strike(in.lab.ctx, batches, func(int64) {})
	return b.perSecond * float64(batch), err
}

// finish ends the run of an intake; the point is its value.
func (in *intake) finish(r *Record, at string) error {
	r.take(in.used)
	r.note("a bare HTTP handler that keeps the same bodies comes to %s events/s", strings.Join(in.kept, ", "))
	if err := in.http.wait(); err != nil {
		return err
	}
	return r.stand(at)
}

// runEventSizes is E5.
func runEventSizes(l *lab, r *Record) error {
	const batches = 10
	batch := l.size(10_000, 100)
	r.Unit = "events/s"
	r.Params["batch"], r.Params["batches"] = batch, batches
	in, err := l.openIntake("E5")
	if err != nil {
		return err
	}
	var w wrong
	for _, size := range []int{25, 50, 100, 250, 500, 1000, 2000, 5000} {
		if err := in.measure(r, fmt.Sprintf("%d chars", size), batches, batch, size, &w); err != nil {
			return err
		}
	}
	if err := in.finish(r, "250 chars"); err != nil {
		return err
	}
	r.note("value and limit are those of 250 chars; a batch is one NDJSON request of %s events, the next begins when it is answered; the limit is raw NATS publish of the same bytes in groups of the same size", thousands(int64(batch)))
	return w.err()
}

// runEventBatches is E6.
func runEventBatches(l *lab, r *Record) error {
	const size = 250
	r.Unit = "events/s"
	r.Params["size"] = size
	in, err := l.openIntake("E6")
	if err != nil {
		return err
	}
	var w wrong
	for _, batch := range []int{1, 10, 100, 1000, 10_000} {
		batches := max(1, min(l.size(5000, 50), l.size(100_000, 1000)/batch))
		if err := in.measure(r, fmt.Sprintf("batch of %s", thousands(int64(batch))), batches, batch, size, &w); err != nil {
			return err
		}
	}
	if err := in.finish(r, "batch of 10,000"); err != nil {
		return err
	}
	r.note("value and limit are those of the batch of 10,000; batches are NDJSON requests one after the other; the limit is raw NATS publish of the same bytes in groups of the same size")
	r.judgeShape(rises)
	return w.err()
}
