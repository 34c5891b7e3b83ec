package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi/statusfeed"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/signin"
)

// pulse is a status that tests change, and keys that they revoke.
type pulse struct {
	*world
	free    atomic.Int64
	revoked atomic.Bool
}

func (p *pulse) Status(ctx context.Context) (wire.Status, error) {
	s, err := p.world.Status(ctx)
	s.DiskFreeBytes = p.free.Load()
	return s, err
}

func (p *pulse) Authenticate(secret string) (catalog.Principal, bool) {
	who, ok := p.world.Authenticate(secret)
	return who, ok && !p.revoked.Load()
}

func (p *pulse) api(change ...func(*Dependencies)) *API {
	return p.world.api(append([]func(*Dependencies){func(d *Dependencies) { d.Reports, d.Keys = p, p }}, change...)...)
}

// A stream is the response to a request that goes on.
type stream struct {
	mu       sync.Mutex
	header   http.Header
	status   int
	text     bytes.Buffer
	deadline time.Time
	stuck    atomic.Bool // the client reads nothing
	ended    chan struct{}
	leave    context.CancelFunc
}

func (s *stream) Header() http.Header                 { return s.header }
func (s *stream) WriteHeader(status int)              { s.status = status }
func (s *stream) Flush()                              {}
func (s *stream) SetReadDeadline(time.Time) error     { return nil }
func (s *stream) SetWriteDeadline(at time.Time) error { s.deadline = at; return nil }

func (s *stream) Write(b []byte) (int, error) {
	if s.stuck.Load() {
		<-time.After(time.Until(s.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// take returns what was sent since the last call.
func (s *stream) take() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.text.Reset()
	return s.text.String()
}

func (s *stream) over() bool {
	synctest.Wait()
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// follow begins to follow the status.
func follow(t *testing.T, a *API, query string, header ...string) *stream {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	s := &stream{header: http.Header{}, ended: make(chan struct{}), leave: leave}
	r := httptest.NewRequestWithContext(ctx, "GET", "/v1/live"+query, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if r.Header.Get("Cookie") != "" {
		r.Header.Del("Authorization")
		r.RemoteAddr, r.Host = "127.0.0.1:1000", "127.0.0.1:8085"
	}
	go func() {
		defer close(s.ended)
		a.ServeHTTP(s, r)
	}()
	return s
}

func TestAStreamHasTheStatusAtOnceAndEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{world: newWorld()}
		a := p.api()
		s := follow(t, a, "")
		text := s.take()
		if !strings.HasPrefix(text, "retry: 2000\n\nid: ") || strings.Count(text, "event: status\n") != 1 || !strings.Contains(text, `"evt-b"`) {
			t.Errorf("the stream begins with %q", text)
		}
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no", "Content-Encoding": ""} {
			if got := s.header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		<-time.After(14 * time.Second)
		if text := s.take(); text != ":\n\n" {
			t.Errorf("without a change: %q", text)
		}
		for n := range int64(20) { // faster than the interval
			p.free.Store(n + 1)
			<-time.After(statusfeed.Interval / 10)
		}
		if text := s.take(); strings.Count(text, "event: status\n") > 3 || !strings.Contains(text, `"disk_free_bytes":2`) {
			t.Errorf("after 20 changes in two intervals: %q", text)
		}
		if n := a.running.Load(); n != 0 {
			t.Errorf("the stream counts as %d running requests", n)
		}
		s.leave()
		<-s.ended
	})
}

func TestAStreamOfAServiceShowsOnlyIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := (&pulse{world: newWorld()}).api()
		for _, s := range []*stream{follow(t, a, "?once=true", "Authorization", "Bearer "+newsSecret), follow(t, a, "?once=true&service=news")} {
			if text := s.take(); !s.over() || !strings.Contains(text, `"evt-a"`) || strings.Contains(text, "other") || strings.Contains(text, "evt-b") {
				t.Errorf("%q", text)
			}
		}
		s := follow(t, a, "?once=true", "Authorization", "Bearer "+newsSecret)
		if text := s.take(); strings.Contains(text, "fanfare@db") {
			t.Errorf("a key of a service sees the database: %q", text)
		}
	})
}

func TestAStreamEndsWithItsRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{world: newWorld()}
		s := follow(t, p.api(), "")
		<-time.After(time.Minute)
		if s.over() {
			t.Fatal("the stream has ended")
		}
		p.revoked.Store(true)
		<-time.After(30 * time.Second)
		if !s.over() {
			t.Error("the stream of a revoked key goes on")
		}
	})
}

// onePerson is a sign-in with the cookie "secret".
type onePerson struct {
	SignIns
	ended  atomic.Bool
	found  atomic.Int64
	peeked atomic.Int64
}

func (o *onePerson) Find(secret string) (signin.SignIn, bool) {
	o.found.Add(1)
	return signin.SignIn{ID: "sin-1", Principal: catalog.Principal{KeyID: "key-1", Scopes: catalog.ScopeRead}}, secret == "secret" && !o.ended.Load()
}

func (o *onePerson) Peek(secret string) (signin.SignIn, bool) {
	o.peeked.Add(1)
	in, ok := o.Find(secret)
	o.found.Add(-1)
	return in, ok
}

func TestAnOpenPageDoesNotProlongASignIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		person := &onePerson{}
		a := (&pulse{world: newWorld()}).api(func(d *Dependencies) { d.SignIns = person })
		s := follow(t, a, "", "Cookie", loopbackCookie+"=secret")
		<-time.After(5 * time.Minute)
		if s.over() || person.found.Load() != 1 || person.peeked.Load() < 10 {
			t.Errorf("ended: %v, %d uses, %d checks", s.over(), person.found.Load(), person.peeked.Load())
		}
		person.ended.Store(true)
		<-time.After(30 * time.Second)
		if !s.over() {
			t.Error("the stream goes on after the end of the sign-in")
		}
		if s := follow(t, a, "", "Cookie", loopbackCookie+"=secret", "Sec-Fetch-Site", "cross-site"); !s.over() || s.status != http.StatusUnauthorized {
			t.Errorf("without a sign-in: %d", s.status)
		}
	})
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := (&pulse{world: newWorld()}).api()
		all := []*stream{follow(t, a, ""), follow(t, a, "?service=news")}
		synctest.Wait()
		a.Stop()
		for _, s := range all {
			<-s.ended
		}
	})
}

func TestASlowReaderIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{world: newWorld()}
		a := p.api()
		slow, other := follow(t, a, ""), follow(t, a, "")
		slow.take()
		slow.stuck.Store(true)
		for range 20 { // each second, there is something to send
			p.free.Add(1)
			<-time.After(time.Second)
		}
		<-time.After(3 * time.Second)
		if !slow.over() {
			t.Error("a reader that reads nothing keeps its stream")
		}
		if strings.Count(other.take(), "event: status\n") < 9 {
			t.Error("a slow reader delays the others")
		}
		other.leave()
		<-other.ended
	})
}

func TestStreamsAreLimitedForEachKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := (&pulse{world: newWorld()}).api()
		var all []*stream
		for range statusfeed.MaxPerKey {
			all = append(all, follow(t, a, ""))
			synctest.Wait()
		}
		refused := ask(t, a, "GET", "/v1/live", "")
		problemIn(t, refused, 429, fanfare.RateLimited)
		if !strings.Contains(refused.Body.String(), strconv.Itoa(statusfeed.MaxPerKey)) {
			t.Errorf("the error is %s", refused.Body)
		}
		if other := follow(t, a, "?once=true", "Authorization", "Bearer "+newsSecret); !other.over() || other.status >= 400 {
			t.Errorf("another key is refused: %d", other.status)
		}
		for _, s := range all {
			s.leave()
			<-s.ended
		}
	})
}

func TestStreamsNeedTheRightToRead(t *testing.T) {
	a := newWorld().api()
	problemIn(t, ask(t, a, "GET", "/v1/live", "", "Authorization", ""), 401, fanfare.Unauthenticated)
	problemIn(t, ask(t, a, "GET", "/v1/live?service=news", "", "Authorization", "Bearer wrong"), 401, fanfare.Unauthenticated)
	problemIn(t, ask(t, a, "GET", "/v1/live?service=other", "", "Authorization", "Bearer "+newsSecret), 403, fanfare.Forbidden)
	problemIn(t, ask(t, a, "GET", "/v1/live?since=1", ""), 422, fanfare.Invalid)
}
