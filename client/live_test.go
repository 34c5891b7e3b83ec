package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
)

// A transcript has the bodies of the responses to the requests of a client; then the key is unknown.
type transcript struct{ bodies []string }

func (a *transcript) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := http.StatusUnauthorized, `{"code":"unauthenticated","detail":"revoked"}`
	if len(a.bodies) > 0 {
		status, body, a.bodies = http.StatusOK, a.bodies[0], a.bodies[1:]
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func TestFollowStatusConnectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{base: "http://server", http: &http.Client{Transport: &transcript{[]string{
			"retry: 2000\n\nid: 1\nevent: status\ndata: {\"version\":\"1\",\ndata: \"ready\":true}\n\n:\n\nevent: later\ndata: {}\n\n" +
				"event: unavailable\ndata: {\"code\":\"unavailable\",\"detail\":\"no database\"}\n\nevent: status\ndata: {\"version\":\"half\"}",
			"event:status\ndata:{\"version\":\"2\"}\n\n",
		}}}}
		var got []string
		begun := time.Now()
		for s, err := range c.FollowStatus(t.Context()) {
			if err != nil {
				got = append(got, string(fanfare.CodeOf(err)))
				continue
			}
			got = append(got, fmt.Sprint(s.Version, " ", s.Ready))
		}
		if want := "1 true, unavailable, 2 false, unauthenticated"; strings.Join(got, ", ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if took := time.Since(begun); took != 2*followPause {
			t.Errorf("connected again after %s", took)
		}
	})
}

func TestFollowStatusEndsWithItsLoopAndItsContext(t *testing.T) {
	ended := make(chan struct{}, 2)
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "event: status\ndata: {\"version\":\"1\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		ended <- struct{}{}
	})
	for s, err := range c.FollowStatus(t.Context()) {
		if err != nil || s.Version != "1" {
			t.Errorf("%+v, %v", s, err)
		}
		break
	}
	<-ended
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range c.FollowStatus(ctx) {
		cancel()
		last = err
	}
	<-ended
	if !errors.Is(last, context.Canceled) {
		t.Errorf("it ended with %v", last)
	}
}
