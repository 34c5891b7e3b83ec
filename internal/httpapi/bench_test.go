package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/limits"
	"fanfare.dev/fanfare/internal/httpapi/listener"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
)

// stub accepts everything and stores nothing, so that only the API is measured.
type stub struct{ *world }

func (stub) PutSubscriptions(_ context.Context, _ string, puts []people.SubscriptionPut, results []people.PutResult) error {
	for i := range results {
		results[i] = people.PutResult{ID: "sub-1c00004e", Created: true}
	}
	return nil
}

func (s stub) Import(service string) Import {
	return imports(func(ctx context.Context, puts []people.SubscriptionPut, results []people.PutResult) error {
		return s.PutSubscriptions(ctx, service, puts, results)
	})
}

func (stub) Post(_ context.Context, events []fanfare.AcceptedEvent) ([]ingest.Result, error) {
	kept := make([]ingest.Result, len(events))
	for i := range kept {
		kept[i].Ref = fanfare.EventRef{Day: 20000, Seq: fanfare.EventSeq(i)}
	}
	return kept, nil
}

func (s stub) api() *API {
	return s.world.api(func(p *Dependencies) { p.Subscriptions, p.Intake = s, s })
}

// importLines returns n subscriptions as lines of an import.
func importLines(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"topic":"earthquakes","channel":"mail","to":"person-%07d@example.com","rule":"near","params":{"place":"Alaska","mag":%d.5}}`+"\n", i, i%7)
	}
	return b.Bytes()
}

func BenchmarkImport(b *testing.B) {
	a := stub{newWorld()}.api()
	const n = 200_000
	body := importLines(n)
	for _, mode := range []string{"", "?quiet=true"} {
		b.Run("lines"+mode, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("POST", "/v1/subscriptions"+mode, bytes.NewReader(body))
				r.Header.Set("Authorization", "Bearer "+adminSecret)
				r.Header.Set("Content-Type", httpio.NDJSON)
				w := &sinkWriter{header: http.Header{}}
				a.ServeHTTP(w, r)
				if w.status != 200 {
					b.Fatal(w.status)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/line")
		})
	}
}

func BenchmarkSinglePost(b *testing.B) {
	a := stub{newWorld()}.api()
	for name, post := range map[string]struct{ path, body, contentType string }{
		"subscription": {"/v1/subscriptions", strings.TrimSpace(string(importLines(1))), "application/json"},
		"plain":        {intake, `{"mag":4.5,"place":"Alaska"}`, "application/json"},
		"cloudevent":   {intake, quakeEvent, httpio.CloudEvent},
		"read of huma": {"/v1/broadcasts", "", ""},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			method := "POST"
			if post.body == "" {
				method = "GET"
			}
			for b.Loop() {
				r := httptest.NewRequest(method, post.path, strings.NewReader(post.body))
				r.Header.Set("Authorization", "Bearer "+adminSecret)
				r.Header.Set("Content-Type", post.contentType)
				w := &sinkWriter{header: http.Header{}}
				a.ServeHTTP(w, r)
				if w.status > 202 {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// sinkWriter discards the response.
type sinkWriter struct {
	header http.Header
	status int
}

func (w *sinkWriter) Header() http.Header         { return w.header }
func (w *sinkWriter) WriteHeader(status int)      { w.status = status }
func (w *sinkWriter) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkSocket posts single requests over 50 connections. It includes the cost of
// the client.
func BenchmarkSocket(b *testing.B) {
	s, err := listener.Listen(listener.Options{Address: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Shutdown(context.Background())
	s.Open(stub{newWorld()}.api())
	for name, post := range map[string]struct{ path, body string }{
		"subscription": {"/v1/subscriptions", strings.TrimSpace(string(importLines(1)))},
		"event":        {intake, `{"mag":4.5,"place":"Alaska"}`},
		"bare":         {"/healthz", ""},
	} {
		b.Run(name, func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}}
			b.SetParallelism(50 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					method := "POST"
					if post.body == "" {
						method = "GET"
					}
					r, _ := http.NewRequest(method, "http://"+s.Addr().String()+post.path, strings.NewReader(post.body))
					r.Header.Set("Authorization", "Bearer "+adminSecret)
					r.Header.Set("Content-Type", "application/json")
					response, err := client.Do(r)
					if err != nil {
						b.Error(err)
						return
					}
					io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
		})
	}
}

// BenchmarkLimits measures the cost of the key limits per request.
func BenchmarkLimits(b *testing.B) {
	for name, l := range map[string]limits.Limits{
		"none":       {},
		"as preset":  {Requests: 4096, RequestsPerKey: 2048},
		"and a rate": {Requests: 4096, RequestsPerKey: 2048, RatePerSecond: 1_000_000},
	} {
		b.Run(name, func(b *testing.B) {
			g := limits.NewKeyLimits(l)
			h := http.Header{}
			now := time.Unix(1_800_000_000, 0)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				mine, err := g.Acquire(h, "key-1", now)
				if err != nil {
					b.Fatal(err)
				}
				mine.Release()
			}
		})
	}
}
