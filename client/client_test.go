package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// against returns a client of a server that answers with h.
func against(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New(s.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refuse answers with a problem document.
func refuse(w http.ResponseWriter, status int, m wire.Member) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(wire.Problem{Title: "x", Status: status, RequestID: "req-1", Member: m})
}

func TestRefusalComesBackAsTheErrorThatTheServerMade(t *testing.T) {
	want := &fanfare.Error{Code: fanfare.Invalid, Message: "is not a number", Pointer: "/data/mag", Line: 3, Column: 4, Hint: "write one",
		Details: []*fanfare.Error{{Code: fanfare.NotFound, Message: "no topic"}}}
	c := against(t, func(w http.ResponseWriter, r *http.Request) { refuse(w, 422, wire.MemberOf(want)) })
	_, err := c.Publish(t.Context(), "quakes", map[string]int{"mag": 1}, PublishOptions{})
	got, ok := errors.AsType[*fanfare.Error](err)
	if !ok || got.Error() != want.Error() || got.Code != want.Code || len(got.Details) != 1 || got.Details[0].Code != fanfare.NotFound {
		t.Errorf("got %#v", err)
	}
}

func TestInternalErrorNamesTheRequest(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		refuse(w, 500, wire.Member{Code: fanfare.Internal, Detail: "something"})
	})
	if _, err := c.Status(t.Context()); fanfare.CodeOf(err) != fanfare.Internal || !strings.Contains(err.Error(), "req-1") {
		t.Errorf("got %v", err)
	}
}

func TestNoAnswerIsUnreachable(t *testing.T) {
	c, _ := New("http://127.0.0.1:1", "key")
	_, err := c.Publish(t.Context(), "q", 1, PublishOptions{})
	if lost, ok := errors.AsType[*Unreachable](err); !ok || lost.Server != "http://127.0.0.1:1" {
		t.Errorf("got %v", err)
	}
	other := against(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "nginx", http.StatusBadGateway) })
	if _, err := other.Status(t.Context()); fanfare.CodeOf(err) != fanfare.Unavailable || !strings.Contains(err.Error(), "502") {
		t.Errorf("a proxy's answer is %v", err)
	}
	for _, bad := range []string{"", "127.0.0.1:8085", "ftp://x", "http://"} {
		if _, err := New(bad, ""); fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("New(%q): %v", bad, err)
		}
	}
}

// flaky answers 503 a number of times and then succeeds.
type flaky struct {
	left  int
	calls int
}

func (f *flaky) RoundTrip(r *http.Request) (*http.Response, error) {
	f.calls++
	rec := httptest.NewRecorder()
	if f.left--; f.left >= 0 {
		rec.Header().Set("Retry-After", "1")
		refuse(rec, 503, wire.Member{Code: fanfare.Unavailable, Detail: "starting"})
	} else {
		rec.WriteString(`{"events":[{"id":"evt-1"}]}`)
	}
	return rec.Result(), nil
}

func TestOnlyWhatIsSafeIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			call  func(*Client) error
			calls int
		}{
			"read":             {func(c *Client) error { _, err := c.Status(t.Context()); return err }, 3},
			"end":              {func(c *Client) error { return c.EndSubscription(t.Context(), "x", "") }, 3},
			"put":              {func(c *Client) error { _, err := c.PutSubscription(t.Context(), Subscription{}); return err }, 3},
			"apply":            {func(c *Client) error { _, err := c.Apply(t.Context(), []byte("x"), false); return err }, 3},
			"event with an id": {func(c *Client) error { _, err := c.Publish(t.Context(), "q", 1, PublishOptions{ID: "1"}); return err }, 3},
			"events": {func(c *Client) error {
				_, err := c.PublishEvents(t.Context(), "q", []fanfare.Event{{ID: "1"}}, PublishOptions{})
				return err
			}, 3},
			"event without an id": {func(c *Client) error { _, err := c.Publish(t.Context(), "q", 1, PublishOptions{}); return err }, 1},
			"stream": {func(c *Client) error {
				_, err := c.ImportSubscriptions(t.Context(), strings.NewReader("{}"), nil)
				return err
			}, 1},
			"key": {func(c *Client) error {
				_, err := c.CreateKey(t.Context(), KeyRequest{Service: "s", Name: "n"})
				return err
			}, 1},
			"retry of parked": {func(c *Client) error { return c.RetryParked(t.Context(), "1") }, 1},
		} {
			c, _ := New("http://x", "key")
			server := &flaky{left: 2}
			c.http.Transport = server
			err := test.call(c)
			if server.calls != test.calls || (err == nil) != (test.calls == 3) {
				t.Errorf("%s: %d calls, %v", name, server.calls, err)
			}
			if err != nil && fanfare.CodeOf(err) != fanfare.Unavailable {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestCancelledCallIsNotTriedAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := against(t, func(w http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	if _, err := c.Status(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRequestsCarryKeyServiceAndContent(t *testing.T) {
	var got *http.Request
	var body []byte
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		io.WriteString(w, `{"events":[{"id":"evt-1","duplicate":true}]}`)
	}).ForService("news")
	a, err := c.Publish(t.Context(), "a/b", map[string]int{"mag": 1}, PublishOptions{IDPointer: "/id", Lane: "urgent", Source: "/s"})
	if err != nil || a.ID != "evt-1" || !a.Duplicate {
		t.Errorf("%+v %v", a, err)
	}
	if got.Header.Get("Authorization") != "Bearer key" || got.Header.Get("X-Fanfare-Service") != "news" || got.URL.EscapedPath() != "/v1/topics/a%2Fb/events" ||
		got.URL.RawQuery != "id=%2Fid&lane=urgent&source=%2Fs" || string(body) != `{"mag":1}` {
		t.Errorf("%s %v %s", got.URL, got.Header, body)
	}
	if _, err := c.PublishEvents(t.Context(), "", []fanfare.Event{{ID: "1", Source: "/s", Type: "q", Data: json.RawMessage(`{}`)}}, PublishOptions{}); err != nil {
		t.Error(err)
	}
	if got.URL.Path != "/v1/events" || string(body) != `[{"specversion":"1.0","id":"1","source":"/s","type":"q","data":{}}]` {
		t.Errorf("%s %s", got.URL, body)
	}
}

func TestSequenceIsStreamedAndItsErrorIsReturned(t *testing.T) {
	var lines atomic.Int64
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		lines.Store(int64(strings.Count(string(body), "\n")))
		json.NewEncoder(w).Encode(PutSummary{Created: lines.Load()})
	})
	broken := errors.New("the source broke")
	var last Progress
	sum, err := c.PutSubscriptions(t.Context(), func(yield func(Subscription, error) bool) {
		for range 1000 {
			if !yield(Subscription{Topic: "q", To: "a@b.c"}, nil) {
				return
			}
		}
		yield(Subscription{}, broken)
	}, func(p Progress) { last = p })
	if !errors.Is(err, broken) || sum.Created != 1000 || lines.Load() != 1000 || last.Lines != 1000 || last.Bytes == 0 {
		t.Errorf("%+v, %v, %d lines, %+v", sum, err, lines.Load(), last)
	}
}

func TestRefusedStreamEndsTheSequence(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		refuse(w, 401, wire.Member{Code: fanfare.Unauthenticated, Detail: "no"})
	})
	_, err := c.PutSubscriptions(t.Context(), func(yield func(Subscription, error) bool) {
		for yield(Subscription{To: strings.Repeat("x", 1000)}, nil) { // without end, until nobody reads
		}
	}, nil)
	if fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("got %v", err)
	}
}

func TestLinesAreAnsweredOneByOne(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(202)
		io.WriteString(w, `{"id":"evt-1","duplicate":false}`+"\n"+`{"line":2,"error":{"code":"invalid","detail":"bad"}}`+"\n"+`{"id":"evt-2","duplicate":true}`+"\n")
	})
	var seen []string
	sum, err := c.PublishLines(t.Context(), "q", strings.NewReader("{}\n{\n{}\n"), PublishOptions{}, func(a Accepted, refused *LineError) error {
		if refused != nil {
			seen = append(seen, refused.Error.Detail)
		} else {
			seen = append(seen, a.ID)
		}
		return nil
	}, nil)
	if err != nil || strings.Join(seen, " ") != "evt-1 bad evt-2" || sum.Accepted != 1 || sum.Duplicates != 1 || sum.Failed != 1 || sum.First != "evt-1" || sum.Last != "evt-2" {
		t.Errorf("%v %+v %v", seen, sum, err)
	}
}

func TestARefusalForNowIsTriedAgainWhenTheServerSays(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		code   fanfare.Code
		after  string
		calls  int
		least  time.Duration
		most   time.Duration
	}{
		"limited":           {429, fanfare.RateLimited, "7", 4, 21 * time.Second, 23 * time.Second},
		"busy":              {503, fanfare.Unavailable, "1", 4, 3 * time.Second, 5 * time.Second},
		"busy without word": {503, fanfare.Unavailable, "", 4, 700 * time.Millisecond, 1400 * time.Millisecond},
		"for long":          {429, fanfare.RateLimited, "3600", 1, 0, 0},
		"full":              {507, fanfare.DiskFull, "60", 1, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := New("http://x", "key")
			calls := 0
			c.http.Transport = answers(func(*http.Request) *http.Response {
				calls++
				rec := httptest.NewRecorder()
				rec.Header().Set("Retry-After", test.after)
				refuse(rec, test.status, wire.Member{Code: test.code, Detail: "not now"})
				return rec.Result()
			})
			begun := time.Now()
			_, err := c.Status(t.Context())
			if took := time.Since(begun); calls != test.calls || took < test.least || took > test.most || fanfare.CodeOf(err) != test.code {
				t.Errorf("%s: %d calls in %v: %v", name, calls, took, err)
			}
		})
	}
}

// answers is a transport.
type answers func(*http.Request) *http.Response

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func TestAListIsReadPageByPage(t *testing.T) {
	var asked []string
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		switch r.URL.Query().Get("cursor") {
		case "":
			io.WriteString(w, `{"topics":[{"name":"a"},{"name":"b"}],"next":"c1"}`)
		case "c1":
			io.WriteString(w, `{"topics":[],"next":"c2"}`) // a page may be empty although more follows
		case "c2":
			io.WriteString(w, `{"topics":[{"name":"c"}]}`)
		default:
			refuse(w, 422, wire.Member{Code: fanfare.Invalid, Detail: "cursor"})
		}
	})
	type topic struct{ Name string }
	var names []string
	for one, err := range List[topic](t.Context(), c, "/v1/topics", "topics", url.Values{"q": {"x"}}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, one.Name)
	}
	if strings.Join(names, "") != "abc" || strings.Join(asked, " ") != "limit=500&q=x cursor=c1&limit=500&q=x cursor=c2&limit=500&q=x" {
		t.Errorf("%v by %v", names, asked)
	}
	for range List[topic](t.Context(), c, "/v1/topics", "topics", nil) {
		break
	}
	if len(asked) != 4 {
		t.Errorf("a list that is left asks on: %v", asked)
	}
	broken := against(t, func(w http.ResponseWriter, r *http.Request) {
		refuse(w, 404, wire.Member{Code: fanfare.NotFound, Detail: "none"})
	})
	for _, err := range List[topic](t.Context(), broken, "/v1/topics", "topics", nil) {
		if fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("got %v", err)
		}
	}
}

func TestAnExportThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	whole := `{"topic":"q","channel":"m","to":"a@b.c"}` + "\n"
	for name, test := range map[string]struct {
		text string
		cut  bool
		want int
	}{"whole": {whole + whole, false, 2}, "cut": {whole + whole[:10], true, 1}, "empty": {"", false, 0}} {
		c := against(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept") != ndjson || r.URL.RawQuery != "topic=q" {
				t.Errorf("asked for %s as %s", r.URL, r.Header)
			}
			io.WriteString(w, test.text)
			if test.cut {
				http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		})
		count, failed := 0, false
		for s, err := range c.ExportSubscriptions(t.Context(), SubscriptionQuery{Topic: "q", State: "ended"}) {
			if err != nil {
				_, failed = errors.AsType[*Unreachable](err)
				break
			}
			if count++; s.To != "a@b.c" {
				t.Errorf("got %+v", s)
			}
		}
		if count != test.want || failed != test.cut {
			t.Errorf("%s: %d, failed %v", name, count, failed)
		}
	}
}

func TestAListAsCSVThatIsCutOffIsNotTakenForWhole(t *testing.T) {
	for result, isWhole := range map[string]bool{"complete": true, "cut off: it took longer than 10m0s": false, "": false} {
		c := against(t, func(w http.ResponseWriter, r *http.Request) {
			if got := r.URL.RequestURI(); got != "/v1/subscriptions?format=csv&topic=story" {
				t.Errorf("asked for %s", got)
			}
			w.Header().Set("Trailer", "Fanfare-Export")
			_, _ = io.WriteString(w, "id\r\nsub-1\r\n")
			w.Header().Set("Fanfare-Export", result)
		})
		var text strings.Builder
		filters := url.Values{"topic": {"story"}}
		if err := c.ListCSV(t.Context(), "/v1/subscriptions", filters, &text); (err == nil) != isWhole || !isWhole && fanfare.CodeOf(err) != fanfare.Unavailable || text.String() != "id\r\nsub-1\r\n" || len(filters) != 1 {
			t.Errorf("%q: %v, %q", result, err, text.String())
		}
	}
}
