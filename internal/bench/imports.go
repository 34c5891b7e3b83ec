package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"

	"fanfare.dev/fanfare/client"
)

// nowhere is a relay that nobody listens at; these experiments send nothing.
const nowhere = "127.0.0.1:9"

// runImport is I1: a bulk import into an empty store.
func runImport(l *lab, r *Record) error { return l.importInto(r, 0) }

// runImportMore is I2: the same into a store that has many already.
func runImportMore(l *lab, r *Record) error { return l.importInto(r, l.size(l.Base, 1000)) }

func (l *lab) importInto(r *Record, base int) error {
	n := l.size(1_000_000, 1000)
	r.Unit = "subscriptions/s"
	r.Params["subscriptions"], r.Params["base"] = n, base
	lines := l.file("people.ndjson")
	bytes, err := writeLines(lines, n, func(dst []byte, i int) []byte {
		return appendSubscription(dst, person(base+i), l.Seed, notifyFilter)
	})
	if err != nil {
		return err
	}
	bare, err := l.bareUpload(lines, n)
	if err != nil {
		return err
	}
	s, err := l.serve("import")
	if err != nil {
		return err
	}
	if _, err := s.api.Apply(l.ctx, configuration(nowhere, "1s"), false); err != nil {
		return err
	}
	if base > 0 {
		took, err := s.populate(base, func(dst []byte, i int) []byte { return appendSubscription(dst, person(i), l.Seed, notifyFilter) })
		if err != nil {
			return err
		}
		r.stage("the base", took)
		l.say("%s subscriptions are there, %s/s; server at %.0f MiB", thousands(int64(base)), figure(float64(base)/took.Seconds()), s.memory("VmRSS"))
	}
	window := s.openWindow(nil)
	if err := s.toggleProfile(); err != nil {
		return err
	}
	put, took, err := s.importFile(lines)
	if err != nil {
		return err
	}
	if err := s.toggleProfile(); err != nil {
		return err
	}
	used := window.close()
	r.stage("import", took)
	r.Value = float64(n) / took.Seconds()
	r.take(used)
	r.CPUMicros = micro(used.server, n)
	r.limit(bare)
	r.Lost = int64(n) - put.Created
	r.note("%d bytes a line; the limit is a bare HTTP handler that writes the same body to a file and syncs it where durability is fsync", bytes/int64(n))
	r.note("server: %.1f us CPU a subscription, %.0f bytes resident each", micro(used.server, n), s.memory("VmRSS")*(1<<20)/float64(base+n))
	var w wrong
	w.unless(r.Lost == 0 && put.Failed == 0, "%d of %d were created, %d failed", put.Created, n, put.Failed)
	random := rand.New(rand.NewPCG(l.Seed, 2))
	for range 20 {
		p := person(random.IntN(base + n))
		_, err := s.api.History(l.ctx, p.address(), 1)
		w.unless(err == nil, "%s: %v", p.address(), err)
	}
	return w.err()
}

// populate imports n subscriptions whose lines are made on the way.
func (s *server) populate(n int, line func(dst []byte, i int) []byte) (time.Duration, error) {
	const body = 4_000_000 // lines of one request, which may be of 4 GiB
	bar := s.lab.bar("base", int64(n))
	defer bar.end()
	started := time.Now()
	for from := 0; from < n; from += body {
		at, to := from, min(from+body, n)
		lines := &lineReader{next: func(dst []byte) []byte {
			if at < to {
				dst = line(dst, at)
				at++
			}
			return dst
		}}
		put, err := s.api.ImportSubscriptions(s.lab.ctx, lines, func(p client.Progress) { bar.set(int64(from) + p.Lines) })
		if err != nil {
			return 0, err
		}
		if put.Failed > 0 {
			return 0, fmt.Errorf("%d subscriptions failed: %+v", put.Failed, put.Errors[0])
		}
	}
	return time.Since(started), nil
}

// A lineReader makes lines as they are read. next appends one, or nothing at the
// end.
type lineReader struct {
	next func(dst []byte) []byte
	rest []byte
	buf  []byte
}

func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.buf = r.buf[:0]
		for len(r.buf) < 32<<10 {
			before := len(r.buf)
			if r.buf = r.next(r.buf); len(r.buf) == before {
				break
			}
		}
		if r.rest = r.buf; len(r.rest) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// bareUpload is how fast a handler with nothing behind it keeps the same lines.
func (l *lab) bareUpload(path string, lines int) (perSecond float64, err error) {
	c, url, err := l.bareHTTP()
	if err != nil {
		return 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/keep", io.NopCloser(f))
	if err != nil {
		return 0, err
	}
	started := time.Now()
	answer, err := (&http.Client{}).Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		return 0, fmt.Errorf("the bare handler answered %s", answer.Status)
	}
	return float64(lines) / time.Since(started).Seconds(), c.wait()
}

// runPosts is I3: subscriptions one by one.
func runPosts(l *lab, r *Record) error {
	n := l.size(100_000, 1000)
	r.Unit = "subscriptions/s"
	s, err := l.single(r, n, "/v1/subscriptions", func(dst []byte, i int) []byte {
		dst = append(dst, `{"id":"s`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, `",`...)
		return append(dst, appendSubscription(nil, person(i+1), l.Seed, notifyFilter)[1:]...)
	})
	if err != nil {
		return err
	}
	var w wrong
	random := rand.New(rand.NewPCG(l.Seed, 3))
	for range traced {
		i := random.IntN(n)
		got, err := s.api.Subscription(l.ctx, fmt.Sprintf("s%d", i))
		w.unless(err == nil && got.To == person(i+1).address() && got.State == "active", "subscription s%d: %+v %v", i, got, err)
	}
	return w.err()
}

// runEvents is I4: events one by one, that one subscription is held against and
// does not want.
func runEvents(l *lab, r *Record) error {
	n := l.size(100_000, 1000)
	r.Unit = "events/s"
	s, err := l.single(r, n, "/v1/topics/news/events?id=/link", func(dst []byte, i int) []byte {
		dst = append(dst, `{"title":"Nothing new","description":"All is as it was, and nobody is told.","link":"e`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		return append(dst, `"}`...)
	})
	if err != nil {
		return err
	}
	started := time.Now()
	if _, err := s.quiet(func(int64) {}); err != nil {
		return err
	}
	r.stage("until all were matched, afterwards", time.Since(started))
	var w wrong
	random := rand.New(rand.NewPCG(l.Seed, 4))
	for range traced {
		i := random.IntN(n)
		b, err := s.api.Event(l.ctx, fmt.Sprintf("e%d", i))
		w.unless(err == nil && b.State == "completed" && b.Matched == 0, "event e%d: %+v %v", i, b, err)
	}
	return w.err()
}

// single posts n bodies one by one to a bare handler and to the server.
func (l *lab) single(r *Record, n int, path string, body func(dst []byte, i int) []byte) (*server, error) {
	r.Params["requests"], r.Params["connections"] = n, connections
	c, url, err := l.bareHTTP()
	if err != nil {
		return nil, err
	}
	h := hammer{url: url, path: "/discard", connections: connections, body: body}
	bare, err := h.strike(l.ctx, n, func(int64) {})
	if err != nil {
		return nil, err
	}
	if err := c.wait(); err != nil {
		return nil, err
	}
	s, err := l.serve("posts")
	if err != nil {
		return nil, err
	}
	lines := l.file("one.ndjson")
	if _, err := writeLines(lines, 1, func(dst []byte, i int) []byte { return appendSubscription(dst, person(i), l.Seed, notifyFilter) }); err != nil {
		return nil, err
	}
	if _, _, err := s.fill(nowhere, lines); err != nil {
		return nil, err
	}
	h.url, h.key, h.path = s.url, s.key, path
	bar := l.bar("post", int64(n))
	defer bar.end()
	window := s.openWindow(nil)
	if err := s.toggleProfile(); err != nil {
		return nil, err
	}
	ours, err := h.strike(l.ctx, n, bar.set)
	if err != nil {
		return nil, s.failed(err)
	}
	if err := s.toggleProfile(); err != nil {
		return nil, err
	}
	used := window.close()
	r.Value, r.P50Millis, r.P99Millis = ours.perSecond, ours.p50, ours.p99
	r.take(used)
	r.CPUMicros = micro(used.server, n)
	r.limit(bare.perSecond)
	r.note("longest answer %s ms; server: %.1f us CPU a request", figure(ours.longest), micro(used.server, n))
	r.note("the limit is a bare HTTP handler that keeps nothing: p50 %s ms, p99 %s ms", figure(bare.p50), figure(bare.p99))
	return s, nil
}
