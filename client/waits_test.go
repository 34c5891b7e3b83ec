package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// A handled request is answered by a handler in this process, so that it takes no time in a synctest bubble.
type handled http.HandlerFunc

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	h(rec, r)
	return rec.Result(), nil
}

// telling returns a client whose requests h answers, and which reports waits.
func telling(h http.HandlerFunc, after time.Duration, tell func(why string)) *Client {
	c, _ := New("http://x", "key")
	c.http.Transport = handled(h)
	return c.ToldOfWaits(after, tell)
}

func TestWaitingRequestsSayWhatTheyWaitFor(t *testing.T) {
	const why = "the database has been unreachable since 2026-11-24T09:05:44Z"
	for name, test := range map[string]struct {
		ready int
		want  string
	}{
		"the server is not ready": {503, why},
		"it works on it":          {200, "the server is ready and is still processing the request"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said := make(chan string, 1)
				answer := make(chan struct{})
				c := telling(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/readyz" {
						<-answer
						w.Write([]byte("{}"))
					} else if test.ready != 200 {
						refuse(w, test.ready, wire.Member{Code: fanfare.Unavailable, Detail: why})
					}
				}, time.Second, func(why string) { said <- why })
				go func() {
					text := <-said
					if !strings.HasSuffix(text, test.want) || !strings.Contains(text, "/v1/status") || !strings.Contains(text, c.Server()) {
						t.Errorf("it was told %q", text)
					}
					close(answer)
				}()
				if _, err := c.Status(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestDeferredMessagesSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		tries := 0
		c := telling(func(w http.ResponseWriter, r *http.Request) {
			if tries++; tries == 1 {
				w.Header().Set("Retry-After", "1")
				refuse(w, 503, wire.Member{Code: fanfare.Unavailable, Detail: "the server is starting"})
				return
			}
			w.Write([]byte("{}"))
		}, time.Second, func(why string) { said = append(said, why) })
		if _, err := c.Status(t.Context()); err != nil || len(said) != 1 || !strings.Contains(said[0], "retrying in 1s: the server is starting") {
			t.Errorf("it was told %q (%v)", said, err)
		}
	})
}
