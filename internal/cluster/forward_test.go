package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/postgres"
)

// A standby is a node that forwards requests until it leads.
type standby struct {
	member *Member
	key    *Key
	base   *http.Transport // to the leader
	url    string
	local  atomic.Pointer[http.Handler]
	stop   chan struct{}

	forwarder *Forwarder
}

func newStandby(t *testing.T) *standby { return newStandbyOf(t, "") }

// newStandbyOf returns a node that forwards requests for an API. It refuses those for another API than that of Fanfare with "refused".
func newStandbyOf(t *testing.T, surface string) *standby {
	t.Helper()
	m, err := Join(t.Context(), Options{Name: "two", URL: "http://two", Store: &connection{memoryStore: newStore()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &standby{member: m, key: keyOf(t, "one cluster key"), stop: make(chan struct{})}
	o := ForwarderOptions{Member: m, Key: s.key, Metrics: http.NotFoundHandler(), Stopping: s.stop, Logger: slog.New(slog.DiscardHandler), Surface: surface, Local: func() http.Handler {
		if h := s.local.Load(); h != nil {
			return *h
		}
		return nil
	}}
	if surface != "" {
		o.Refuse = func(w http.ResponseWriter, _ *http.Request, _ *fanfare.Error) {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "refused")
		}
	}
	f := NewForwarder(o)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	s.base, s.url, s.forwarder = f.base, server.URL, f
	return s
}

// leads makes a node the leader.
func (s *standby) leads(name, url string, epoch int64) {
	s.member.setLeader(postgres.Holder{Node: name, URL: url, Epoch: epoch, Held: true})
}

// takesOver makes this node the leader, with an API that echoes the body.
func (s *standby) takesOver(epoch int64) {
	var api http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, "local "+r.Method+" "+string(body))
	})
	s.local.Store(&api)
	s.leads("two", "http://two", epoch)
}

func (s *standby) send(t *testing.T, method, path, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	response, err := (&http.Client{Timeout: time.Minute}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(b)
}

// A request that waits for a leader ends when the node stops, so that its client can try another node.
func TestAWaitingRequestEndsWhenTheNodeStops(t *testing.T) {
	s := newStandby(t)
	waits := make(chan int, 1)
	go func() {
		status, _ := s.send(t, "POST", "/v1/events", "")
		waits <- status
	}()
	select {
	case status := <-waits:
		t.Fatalf("the request does not wait: %d", status)
	case <-time.After(100 * time.Millisecond):
	}
	close(s.stop)
	if status := <-waits; status != 503 {
		t.Errorf("the status is %d", status)
	}
}

func TestARequestIsForwardedToTheLeader(t *testing.T) {
	s := newStandby(t)
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if _, remote, ok := s.key.verify(r, r.Header.Get(forwardedHeader), time.Now()); remote || !ok {
			t.Error("a client on the machine of the node is named")
		}
		io.WriteString(w, strings.Join([]string{r.Method, r.URL.RequestURI(), r.Host, r.Header.Get("X-Forwarded-For"), string(body)}, " "))
	}))
	defer leader.Close()
	s.leads("one", leader.URL, 1)
	want := "POST /v1/topics/a%2Fb/events?wait=1s " + strings.TrimPrefix(s.url, "http://") + " 192.0.2.1 " + strings.Repeat("x", 1<<20)
	if status, text := s.send(t, "POST", "/v1/topics/a%2Fb/events?wait=1s", strings.Repeat("x", 1<<20)); status != 200 || text != want {
		t.Errorf("%d %.200s", status, text)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ok: two forwards requests to one"} {
		if status, text := s.send(t, "GET", path, ""); status != 200 || !strings.HasPrefix(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// Another API has a listener of its own on each node. Its requests reach the API of that name at the leader, also those whose paths this node answers
// in its own API, and errors have the form of that API.
func TestRequestsForAnotherAPIReachItAtTheLeader(t *testing.T) {
	s := newStandbyOf(t, "other")
	say := func(what string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, name := range []string{forwardedHeader, surfaceHeader, tlsHeader} {
				if r.Header.Get(name) != "" {
					t.Errorf("the API sees the header %s", name)
				}
			}
			io.WriteString(w, what+" "+r.Method+" "+r.URL.Path)
		})
	}
	leader := httptest.NewServer(s.key.Trust(say("main"), map[string]http.Handler{"other": say("other")}))
	defer leader.Close()
	s.leads("one", leader.URL, 1)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/api/x"} {
		if status, text := s.send(t, "GET", path, ""); status != 200 || text != "other GET "+path {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	former := httptest.NewServer(newStandby(t).forwarder)
	defer former.Close()
	s.leads("three", former.URL, 2)
	if status, text := s.send(t, "GET", "/api/x", ""); status != 503 || text != "refused" {
		t.Errorf("a node that does not lead: %d %s", status, text)
	}
	s.takesOver(3)
	if status, text := s.send(t, "POST", "/api/x", "body"); status != 200 || text != "local POST body" {
		t.Errorf("this node leads: %d %s", status, text)
	}
}

// A client cannot choose the API by a header.
func TestAClientCannotNameAnAPI(t *testing.T) {
	s := newStandby(t)
	leader := httptest.NewServer(s.key.Trust(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "main"+r.Header.Get(surfaceHeader)) }),
		map[string]http.Handler{"other": http.NotFoundHandler()}))
	defer leader.Close()
	s.leads("one", leader.URL, 1)
	for _, to := range []string{s.url, leader.URL} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", to+"/v1/status", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(surfaceHeader, "other")
		r.Header.Set(tlsHeader, tlsPlain)
		response, err := (&http.Client{Timeout: time.Minute}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if string(text) != "main" {
			t.Errorf("%s answers %s %s", to, response.Status, text)
		}
	}
}

// A leader that does not listen has received nothing: the request waits for the next leader, which may be this node.
func TestARequestThatReachedNobodyIsSentToTheNextLeader(t *testing.T) {
	s := newStandby(t)
	s.leads("one", "http://127.0.0.1:1", 1)
	time.AfterFunc(300*time.Millisecond, func() { s.takesOver(2) })
	if status, text := s.send(t, "POST", "/v1/events", "an event"); status != 200 || text != "local POST an event" {
		t.Errorf("%d %s", status, text)
	}
}

// The leader may change while a request waits for its connection. Nothing of the request was sent.
func TestARequestWithoutAConnectionIsSentToTheNextLeader(t *testing.T) {
	s := newStandby(t)
	s.base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		s.takesOver(2)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.leads("one", "http://127.0.0.1:1", 1)
	if status, text := s.send(t, "POST", "/v1/events", "an event"); status != 200 || text != "local POST an event" {
		t.Errorf("%d %s", status, text)
	}
}

// A frozen leader may have carried out a request. A read is repeated, and the outcome of a change is unknown.
func TestARequestOfALeaderThatLosesTheLease(t *testing.T) {
	for method, want := range map[string]string{"GET": "local GET ", "POST": "it is unknown whether the request was carried out"} {
		t.Run(method, func(t *testing.T) {
			s := newStandby(t)
			received, end := make(chan struct{}), make(chan struct{})
			frozen := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(received); <-end }))
			defer frozen.Close()
			defer close(end)
			s.leads("one", frozen.URL, 1)
			go func() {
				<-received
				s.takesOver(2)
			}()
			if status, text := s.send(t, method, "/v1/status", ""); status != map[string]int{"GET": 200, "POST": 503}[method] || !strings.Contains(text, want) {
				t.Errorf("%d %s", status, text)
			}
		})
	}
}

// If two nodes each consider the other one the leader, a request is still forwarded only once.
func TestAForwardedRequestIsNotForwardedAgain(t *testing.T) {
	s := newStandby(t)
	s.leads("one", s.url, 1) // it sends to itself
	if status, text := s.send(t, "GET", "/v1/status", ""); status != 503 || !strings.Contains(text, "no longer leads") {
		t.Errorf("%d %s", status, text)
	}
}

// newEcho is a leader that echoes the lines of upgraded connections.
func newEcho(t *testing.T) *httptest.Server {
	t.Helper()
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "echo %s", line)
		}
	}))
	t.Cleanup(leader.Close)
	return leader
}

// upgrade opens an upgraded connection, and sends a line to see that it works.
func (s *standby) upgrade(t *testing.T) (conn net.Conn, in *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprint(conn, "GET /v1/stream HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n")
	in = bufio.NewReader(conn)
	response, err := http.ReadResponse(in, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Upgrade") != "lines" {
		t.Fatalf("got %+v, %v", response, err)
	}
	echoes(t, conn, in, "one\n")
	return conn, in
}

func echoes(t *testing.T, conn net.Conn, in *bufio.Reader, text string) {
	t.Helper()
	fmt.Fprint(conn, text)
	if line, err := in.ReadString('\n'); line != "echo "+text {
		t.Fatalf("got %q, %v", line, err)
	}
}

// A stream is forwarded in both directions, also while all slots for requests are taken.
// A stream of events would go on for ever; its client connects to another node, or to the next leader.
func TestAStreamOfEventsEndsWithTheNodeAndWithTheLease(t *testing.T) {
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: one\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(leader.Close)
	for what, end := range map[string]func(s *standby){
		"node":  func(s *standby) { close(s.stop) },
		"lease": func(s *standby) { s.leads("three", leader.URL, 2) },
	} {
		s := newStandby(t)
		s.leads("one", leader.URL, 1)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/live", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Timeout: time.Minute}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		in := bufio.NewReader(response.Body)
		if line, err := in.ReadString('\n'); line != "data: one\n" {
			t.Fatalf("%s: got %q, %v", what, line, err)
		}
		end(s)
		if _, err := io.ReadAll(in); err == nil {
			t.Errorf("%s: the end of the stream seems to be its own", what)
		}
	}
}

func TestAnUpgradedConnectionIsForwarded(t *testing.T) {
	s := newStandby(t)
	s.leads("one", newEcho(t).URL, 1)
	conn, in := s.upgrade(t)
	echoes(t, conn, in, "two\n")
}

// A stream to a leader that hangs ends when another node leads. News about the same leader does not end it.
func TestAnUpgradedConnectionEndsWithTheLease(t *testing.T) {
	s := newStandby(t)
	leader := newEcho(t)
	s.leads("one", leader.URL, 1)
	conn, in := s.upgrade(t)
	s.leads("one", leader.URL+"/", 1)
	echoes(t, conn, in, "two\n")
	s.leads("three", "http://127.0.0.1:1", 2)
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if line, err := in.ReadString('\n'); line != "" || !errors.Is(err, io.EOF) {
		t.Fatalf("got %q, %v", line, err)
	}
}
