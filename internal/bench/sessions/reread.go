package sessions

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/session"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

const (
	rereadClient = "client"
	rereadPage   = 1000   // responses
	rereadSize   = 16     // bytes of a request: its number, and a number made of it
	fillMark     = 50_000 // responses between two lines of progress
)

// rereadSpec is what the processes that write and read many durable responses are told.
type rereadSpec struct {
	serverSpec
	Worker  string // "": only read
	Session string // to read
	Count   int
	Page    int // responses of a page; 0: read the stream
}

// reread is a line of those processes.
type reread struct {
	Done    int64 // responses so far
	End     bool  // it is the last line
	Session string
	Digest  string // of the numbers and bodies of all responses, in order
	Took    time.Duration
	Pages   []time.Duration // sorted
	Bad     string          // the first response that is not as it must be
}

// FillPart opens a durable session, sends many requests, and reads the responses as they come.
func FillPart(ctx context.Context, spec rereadSpec, _ io.Reader, out *json.Encoder) error {
	c, err := client.New(spec.URL, spec.Key)
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, c.ForService(spec.Service), session.Options{Worker: spec.Worker, Kind: session.Durable})
	if err != nil {
		return err
	}
	cl, err := s.Client(ctx, rereadClient)
	if err != nil {
		return err
	}
	began := time.Now()
	failed := make(chan error, 1)
	go func() {
		var body [rereadSize]byte
		for n := range uint64(spec.Count) { // #nosec G115 -- not negative
			putRequest(body[:], n+1)
			if _, err := cl.Send(ctx, body[:]); err != nil {
				failed <- err
				return
			}
		}
		failed <- cl.EndCount(ctx, uint64(spec.Count)) // #nosec G115 -- not negative
	}()
	check := newRereadCheck(spec.Count)
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			return err
		}
		if check.add(r.Number, r.Request, r.Body, r.Err() != nil); check.next%fillMark == 0 {
			if err := out.Encode(reread{Done: int64(check.next)}); err != nil { // #nosec G115 -- a count
				return err
			}
		}
	}
	if err := <-failed; err != nil {
		return err
	}
	took := time.Since(began)
	if err := cl.Close(ctx); err != nil {
		return err
	}
	return out.Encode(check.result(s.ID(), took))
}

// RereadPart reads all responses of a durable session again, by pages or by the stream.
func RereadPart(ctx context.Context, spec rereadSpec, _ io.Reader, out *json.Encoder) error {
	c, err := client.New(spec.URL, spec.Key)
	if err != nil {
		return err
	}
	s, err := session.Attach(ctx, c.ForService(spec.Service), spec.Session)
	if err != nil {
		return err
	}
	check := newRereadCheck(spec.Count)
	began := time.Now()
	if spec.Page == 0 {
		cl, err := s.Client(ctx, rereadClient, session.From(1))
		if err != nil {
			return err
		}
		for r, err := range cl.Responses(ctx) {
			if err != nil {
				return err
			}
			check.add(r.Number, r.Request, r.Body, r.Err() != nil)
		}
		took := time.Since(began)
		if err := cl.Close(ctx); err != nil {
			return err
		}
		return out.Encode(check.result(s.ID(), took))
	}
	var pages []time.Duration
	for from := uint64(1); ; {
		asked := time.Now()
		page, err := s.Page(ctx, rereadClient, from, spec.Page)
		if err != nil {
			return err
		}
		if len(page.Responses) == 0 {
			break
		}
		pages = append(pages, time.Since(asked))
		for i := range page.Responses {
			r := &page.Responses[i]
			check.add(r.Number, r.Request, r.Body, r.Status != "ok")
		}
		if page.Next != check.next+1 {
			check.refuse("a page up to response %d says that %d is the next one", check.next, page.Next)
		}
		if before := check.next - uint64(len(page.Responses)); before/fillMark != check.next/fillMark {
			if err := out.Encode(reread{Done: int64(check.next)}); err != nil { // #nosec G115 -- a count
				return err
			}
		}
		from = page.Next
	}
	result := check.result(s.ID(), time.Since(began))
	slices.Sort(pages)
	result.Pages = pages
	return out.Encode(result)
}

// putRequest makes the body of a request.
func putRequest(body []byte, n uint64) {
	binary.LittleEndian.PutUint64(body, n)
	binary.LittleEndian.PutUint64(body[8:], n*0x9e3779b97f4a7c15)
}

// A rereadCheck checks the responses of a client: they are numbered from 1 without gaps, each request has one, and its body is
// that of the request.
type rereadCheck struct {
	next   uint64 // number of the last response
	seen   []bool // by request
	digest hash.Hash
	batch  []byte // for the digest
	bad    string
}

func newRereadCheck(count int) *rereadCheck {
	return &rereadCheck{seen: make([]bool, count+1), digest: sha256.New()}
}

func (c *rereadCheck) refuse(format string, args ...any) {
	if c.bad == "" {
		c.bad = fmt.Sprintf(format, args...)
	}
}

func (c *rereadCheck) add(number, request uint64, body []byte, fault bool) {
	c.next++
	var want [rereadSize]byte
	putRequest(want[:], request)
	switch {
	case number != c.next:
		c.refuse("response %d arrived, but %d was expected", number, c.next)
	case fault:
		c.refuse("response %d is a fault: %.200s", number, body)
	case request == 0 || request >= uint64(len(c.seen)):
		c.refuse("response %d is for request %d", number, request)
	case c.seen[request]:
		c.refuse("request %d has two responses", request)
	case string(body) != string(want[:]):
		c.refuse("response %d has the body %x, not that of request %d", number, body, request)
	default:
		c.seen[request] = true
	}
	c.batch = binary.LittleEndian.AppendUint64(c.batch, number)
	c.batch = append(binary.LittleEndian.AppendUint64(c.batch, request), body...)
	if len(c.batch) >= 4096 {
		c.flush()
	}
}

func (c *rereadCheck) flush() {
	c.digest.Write(c.batch)
	c.batch = c.batch[:0]
}

func (c *rereadCheck) result(id string, took time.Duration) reread {
	c.flush()
	if want := uint64(len(c.seen) - 1); c.next != want { // #nosec G115 -- not negative
		c.refuse("%d responses arrived instead of %d", c.next, want)
	}
	return reread{Done: int64(c.next), End: true, Session: id, Digest: hex.EncodeToString(c.digest.Sum(nil)), Took: took, Bad: c.bad} // #nosec G115 -- a count
}

// runReread runs a process that writes or reads, and shows its progress.
func runReread(l *harness.Env, part, title string, spec rereadSpec) (result reread, err error) {
	c, err := l.StartPart(part, spec)
	if err != nil {
		return result, err
	}
	bar := l.Progress(title, int64(spec.Count))
	defer bar.End()
	for !result.End {
		if err := c.ReadJSON(&result); err != nil {
			return result, err
		}
		bar.Set(result.Done)
	}
	return result, c.Wait()
}

// RunReread is T5: how many responses per second of a durable session can be read again.
func RunReread(l *harness.Env, r *report.Record) error {
	s, workers, err := start(l, "T5", instances, 0)
	if err != nil {
		return err
	}
	count := l.Size(10_000_000, 1000)
	r.Unit = "responses/s"
	r.Params["responses"], r.Params["bytes"], r.Params["page"] = count, rereadSize, rereadPage
	spec := rereadSpec{serverSpec: serverSpec{s.URL, s.Key, serviceName}, Worker: workerName, Count: count}
	filled, err := runReread(l, "fill", "write", spec)
	if err != nil {
		return s.WithLog(err)
	}
	if _, err := stopWorkers(l, workers); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	if s, err = l.StartServer("T5"); err != nil {
		return err
	}
	r.AddStage("write", filled.Took)
	r.AddStage("start to ready", s.Ready)
	var w report.Checks
	w.Require(filled.Bad == "", "while they were written: %s", filled.Bad)
	spec.serverSpec, spec.Worker, spec.Session = serverSpec{s.URL, s.Key, serviceName}, "", filled.Session
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	for _, way := range []struct {
		name string
		page int
	}{{"pages", rereadPage}, {"stream", 0}} {
		spec.Page = way.page
		window := s.OpenWindow(nil)
		got, err := runReread(l, "reread", way.name, spec)
		if err != nil {
			return s.WithLog(err)
		}
		used := window.Close()
		w.Require(got.Bad == "", "%s: %s", way.name, got.Bad)
		w.Require(got.Digest == filled.Digest, "%s: the digest of the responses is %s, and was %s when they were written", way.name, got.Digest, filled.Digest)
		p := report.Point{At: way.name, Value: float64(count) / got.Took.Seconds(), CPUMicros: report.MicrosPer(used.Server, count)}
		if n := len(got.Pages); n > 0 {
			p.P50Millis, p.P99Millis = report.Millis(got.Pages[n/2]), report.Millis(got.Pages[n*99/100])
			harness.RecordUsage(r, used)
			r.CPUMicros = p.CPUMicros
			r.Note("%s pages of at most %d responses were read, one after the other; p50 and p99 are those of a page", report.Thousands(int64(n)), way.page)
		}
		r.AddStage(way.name, got.Took)
		r.AddPoint(p)
		if err := s.ToggleProfile(); err != nil {
			return err
		}
	}
	r.Note("value: all responses of one client, read in pages through the API from number 1 after a restart of the server; each is compared with its request, and the digest of all with that of the responses when they were written, at %.0f/s", float64(count)/filled.Took.Seconds())
	if err := r.UsePoint("pages"); err != nil {
		return err
	}
	return w.Err()
}
