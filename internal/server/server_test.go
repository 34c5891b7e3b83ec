package server_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/server"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// testServer is a whole Fanfare in this process, with a capture server to send to.
type testServer struct {
	t    *testing.T
	app  *server.Server
	dir  string
	key  string
	sink *sink.Server
	addr string // of the sink

	database string // its URL; "": files in dir
	operator bool   // calls are for all services

	change func(*config.Config) // of what it starts with, or nil
	log    slog.Handler         // nil: warnings to the output of the test
}

func start(t *testing.T, inject sink.Inject) *testServer {
	t.Helper()
	return startOn(t, pgtest.Chosen(t), inject)
}

// startOn is start with a database, "" for files.
func startOn(t *testing.T, database string, inject sink.Inject) *testServer {
	t.Helper()
	return (&testServer{t: t, dir: t.TempDir(), database: database}).begin(inject)
}

// startChanged is start with other settings.
func startChanged(t *testing.T, inject sink.Inject, change func(*config.Config)) *testServer {
	t.Helper()
	return (&testServer{t: t, dir: t.TempDir(), database: pgtest.Chosen(t), change: change}).begin(inject)
}

// begin starts the capture server and the server.
func (s *testServer) begin(inject sink.Inject) *testServer {
	t := s.t
	t.Helper()
	s.sink = sink.New(sink.Config{Inject: inject, KeepFirst: 10})
	addr, err := s.sink.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = addr.(*net.TCPAddr).String()
	go func() {
		if err := s.sink.Serve(); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { s.sink.Close() })
	s.open()
	t.Cleanup(func() { s.app.Stop() })
	return s
}

func (s *testServer) open() {
	s.t.Helper()
	c := config.Config{
		DataDir: s.dir, Listen: "127.0.0.1:0", Durability: "relaxed", Lease: 10 * time.Minute, Retention: 30, AuditDays: 365,
		DrainTimeout: 5 * time.Second, PublicURL: "https://news.example.org", DB: s.database, DBConnections: 8, DBStatementTimeout: time.Minute,
		AllowNetworks: []string{"127.0.0.0/8"},
	}
	if s.change != nil {
		s.change(&c)
	}
	if s.log == nil {
		s.log = slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})
	}
	a, err := server.Start(s.t.Context(), c, server.Options{Version: "test", Logger: slog.New(s.log)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.app = a
	key, err := os.ReadFile(filepath.Join(s.dir, "admin.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.key = strings.TrimSpace(string(key))
}

// call sends a request, for the service "news" unless it is an operator's, and returns status and body.
func (s *testServer) call(method, path, contentType, body string) (int, string) {
	s.t.Helper()
	code, answer, _ := s.exchange(method, path, contentType, body)
	return code, answer
}

// exchange is call with the headers of the response.
func (s *testServer) exchange(method, path, contentType, body string) (int, string, http.Header) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.app.URL()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	if !s.operator {
		r.Header.Set("X-Fanfare-Service", "news")
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	resp, err := (&http.Client{Timeout: patience}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// must is call, and fails the test if the response has another status.
func (s *testServer) must(status int, method, path, contentType, body string) string {
	s.t.Helper()
	got, answer := s.call(method, path, contentType, body)
	if got != status {
		s.t.Fatalf("%s %s: got %d, want %d: %s", method, path, got, status, answer)
	}
	return answer
}

func (s *testServer) apply() {
	s.t.Helper()
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, retry: [1s, 1s, 1s]}
topics:
  story:
    schema: {type: object, required: [title], properties: {title: {type: string}, level: {type: number}}}
    template: story
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
templates:
  story:
    subject: "{{ event.title }}"
    text: "Hello {{ subscriber.address }}: {{ event.title }} ({{ subscription.data.why }})\n{{ unsubscribe_url }}\n"
`, s.addr))
}

// patience is how long a test waits for an expected result. It only determines how
// long a failure takes.
const patience = 3 * time.Minute

// eventually waits until cond holds.
func (s *testServer) eventually(what string, cond func() bool) {
	s.t.Helper()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-deadline:
			s.t.Fatalf("%s did not come about; sink: %+v", what, s.sink.Stats())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func people(n int) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"topic":"story","channel":"email","to":"person%d@example.org","rule":"level","params":{"from":%d},"data":{"why":"you asked"}}`+"\n", i, i%10)
	}
	return b.String()
}

func TestEventReachesEachSubscriberOnce(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(3000))
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"It works","level":4}`)
	s.eventually("1500 mails", func() bool { return s.sink.Stats().Unique == 1500 })
	s.eventually("the broadcast's end", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/broadcasts", "", ""), `"state":"completed"`)
	})
	if got := s.sink.Stats(); got.Duplicates != 0 {
		t.Errorf("%d duplicates", got.Duplicates)
	}
	t.Log(string(s.sink.Messages()[0].Body))
	t.Log(s.must(200, "GET", "/v1/subscribers/person3@example.org/deliveries", "", ""))
	t.Log(s.must(200, "GET", "/v1/status", "", ""))
}
