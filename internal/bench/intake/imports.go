package intake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/report"
)

// lookedUp is how many subscriptions or events are read back after they were posted.
const lookedUp = 100

// RunImport is I1: a bulk import into an empty store.
func RunImport(l *harness.Env, r *report.Record) error { return importInto(l, r, 0) }

// RunImportMore is I2: the same into a store that has many already.
func RunImportMore(l *harness.Env, r *report.Record) error {
	return importInto(l, r, l.Size(l.Base, 1000))
}

func importInto(l *harness.Env, r *report.Record, base int) error {
	n := l.Size(1_000_000, 1000)
	r.Unit = "subscriptions/s"
	r.Params["subscriptions"], r.Params["base"] = n, base
	lines := l.File("people.ndjson")
	bytes, err := loadgen.WriteLines(lines, n, func(dst []byte, i int) []byte {
		return loadgen.AppendSubscription(dst, loadgen.Person(base+i), l.Seed, loadgen.NotifyFilter)
	})
	if err != nil {
		return err
	}
	bare, err := bareUpload(l, lines, n)
	if err != nil {
		return err
	}
	s, err := l.StartServer("import")
	if err != nil {
		return err
	}
	if _, err := s.API.Apply(l.Ctx, loadgen.Configuration(loadgen.Nowhere, "1s"), false); err != nil {
		return err
	}
	if base > 0 {
		took, err := s.Populate(base, func(dst []byte, i int) []byte {
			return loadgen.AppendSubscription(dst, loadgen.Person(i), l.Seed, loadgen.NotifyFilter)
		})
		if err != nil {
			return err
		}
		r.AddStage("import of the base", took)
		l.Say("imported %s subscriptions, %s/s; server at %.0f MiB", report.Thousands(int64(base)), report.Figure(float64(base)/took.Seconds()), s.Memory("VmRSS"))
	}
	window := s.OpenWindow(nil)
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	put, took, err := s.ImportFile(lines)
	if err != nil {
		return err
	}
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	used := window.Close()
	r.AddStage("import", took)
	r.Value = float64(n) / took.Seconds()
	harness.RecordUsage(r, used)
	r.CPUMicros = report.MicrosPer(used.Server, n)
	r.SetLimit(bare)
	r.Lost = int64(n) - put.Created
	r.Note("a line has %d bytes; the limit is a bare HTTP handler that writes the same body to a file, and syncs it if durability is fsync", bytes/int64(n))
	r.Note("server: %.1f us of CPU and %.0f bytes of resident memory for a subscription", report.MicrosPer(used.Server, n), s.Memory("VmRSS")*(1<<20)/float64(base+n))
	var w report.Checks
	w.Require(r.Lost == 0 && put.Failed == 0, "%d of %d were created, %d failed", put.Created, n, put.Failed)
	random := rand.New(rand.NewPCG(l.Seed, 2))
	for range 20 {
		p := loadgen.Person(random.IntN(base + n))
		_, err := s.API.History(l.Ctx, p.Address(), 1)
		w.Require(err == nil, "%s: %v", p.Address(), err)
	}
	return w.Err()
}

// bareUpload returns the rate at which a bare HTTP handler stores the same lines.
func bareUpload(l *harness.Env, path string, lines int) (perSecond float64, err error) {
	c, url, err := rawlimit.BareHTTP(l)
	if err != nil {
		return 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	ctx, cancel := context.WithTimeout(l.Ctx, 10*time.Minute)
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
		return 0, fmt.Errorf("the bare handler returned %s", answer.Status)
	}
	return float64(lines) / time.Since(started).Seconds(), c.Wait()
}

// RunPosts is I3: subscriptions one by one.
func RunPosts(l *harness.Env, r *report.Record) error {
	n := l.Size(100_000, 1000)
	r.Unit = "subscriptions/s"
	s, err := postSingly(l, r, n, posting{path: "/v1/subscriptions", body: func(dst []byte, i int) []byte {
		dst = append(dst, `{"id":"s`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(dst, `",`...)
		return append(dst, loadgen.AppendSubscription(nil, loadgen.Person(i+1), l.Seed, loadgen.NotifyFilter)[1:]...)
	}})
	if err != nil {
		return err
	}
	var w report.Checks
	random := rand.New(rand.NewPCG(l.Seed, 3))
	for range lookedUp {
		i := random.IntN(n)
		got, err := s.API.Subscription(l.Ctx, fmt.Sprintf("s%d", i))
		w.Require(err == nil && got.To == loadgen.Person(i+1).Address() && got.State == "active", "subscription s%d: %+v %v", i, got, err)
	}
	return w.Err()
}

// RunEvents is I4: events one by one. The server has one subscription, which matches
// none of them.
func RunEvents(l *harness.Env, r *report.Record) error {
	return runEvents(l, r, posting{path: "/v1/topics/news/events?id=/link"})
}

// topicsOfEvents is the number of topics of I4t: as many as EVENTS has partitions.
const topicsOfEvents = 64

// RunEventsOnTopics is I4t: the same events on many topics in turn.
func RunEventsOnTopics(l *harness.Env, r *report.Record) error {
	r.Params["topics"] = topicsOfEvents
	return runEvents(l, r, posting{path: "/v1/topics/", topics: topicsOfEvents, target: func(dst []byte, i int) []byte {
		dst = strconv.AppendInt(append(dst, 't'), int64(i%topicsOfEvents), 10)
		return append(dst, "/events?id=/link"...)
	}})
}

func runEvents(l *harness.Env, r *report.Record, p posting) error {
	n := l.Size(100_000, 1000)
	r.Unit = "events/s"
	p.body = func(dst []byte, i int) []byte {
		dst = append(dst, `{"title":"Nothing new","description":"All is as it was, and nobody is told.","link":"e`...)
		dst = strconv.AppendInt(dst, int64(i), 10)
		return append(dst, `"}`...)
	}
	s, err := postSingly(l, r, n, p)
	if err != nil {
		return err
	}
	started := time.Now()
	if _, err := s.WaitIdle(func(int64) {}); err != nil {
		return err
	}
	r.AddStage("until all events were matched, afterwards", time.Since(started))
	var w report.Checks
	random := rand.New(rand.NewPCG(l.Seed, 4))
	for range lookedUp {
		i := random.IntN(n)
		b, err := s.API.Event(l.Ctx, fmt.Sprintf("e%d", i))
		w.Require(err == nil && b.State == "completed" && b.Matched == 0, "event e%d: %+v %v", i, b, err)
	}
	return w.Err()
}

// A posting is what is posted one by one.
type posting struct {
	path   string
	target func(dst []byte, i int) []byte // what follows the path of request i; may be nil
	body   func(dst []byte, i int) []byte
	topics int // further topics of the service: t0, t1 and so on
}

// postSingly posts n bodies one by one to a bare handler and to the server.
func postSingly(l *harness.Env, r *report.Record, n int, p posting) (*harness.Server, error) {
	r.Params["requests"], r.Params["connections"] = n, loadgen.Connections
	c, url, err := rawlimit.BareHTTP(l)
	if err != nil {
		return nil, err
	}
	h := loadgen.HTTPLoad{URL: url, Path: "/discard", Connections: loadgen.Connections, Body: p.body}
	bare, err := h.Run(l.Ctx, n, func(int64) {})
	if err != nil {
		return nil, err
	}
	if err := c.Wait(); err != nil {
		return nil, err
	}
	s, err := l.StartServer("posts")
	if err != nil {
		return nil, err
	}
	lines := l.File("one.ndjson")
	if _, err := loadgen.WriteLines(lines, 1, func(dst []byte, i int) []byte {
		return loadgen.AppendSubscription(dst, loadgen.Person(i), l.Seed, loadgen.NotifyFilter)
	}); err != nil {
		return nil, err
	}
	document := loadgen.Configuration(loadgen.Nowhere, "1s")
	for i := range p.topics {
		document = bytes.Replace(document, []byte("\ntopics:\n"), fmt.Appendf(nil, "\ntopics:\n  t%d: {template: news}\n", i), 1)
	}
	if _, _, err := s.Fill(document, lines); err != nil {
		return nil, err
	}
	h.URL, h.Key, h.Path, h.Target = s.URL, s.Key, p.path, p.target
	bar := l.Progress("post", int64(n))
	defer bar.End()
	window := s.OpenWindow(nil)
	if err := s.ToggleProfile(); err != nil {
		return nil, err
	}
	ours, err := h.Run(l.Ctx, n, bar.Set)
	if err != nil {
		return nil, s.WithLog(err)
	}
	if err := s.ToggleProfile(); err != nil {
		return nil, err
	}
	used := window.Close()
	r.Value, r.P50Millis, r.P99Millis = ours.PerSecond, ours.P50, ours.P99
	harness.RecordUsage(r, used)
	r.CPUMicros = report.MicrosPer(used.Server, n)
	r.SetLimit(bare.PerSecond)
	r.Note("longest answer %s ms; server: %.1f us of CPU for a request", report.Figure(ours.Longest), report.MicrosPer(used.Server, n))
	r.Note("the limit is a bare HTTP handler that stores nothing: p50 %s ms, p99 %s ms", report.Figure(bare.P50), report.Figure(bare.P99))
	return s, nil
}
