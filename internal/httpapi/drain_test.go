package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestDrainWaitsForTheChangesThatCameBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &API{stopping: make(chan struct{}), changes: requestCount{underWay: new(sync.WaitGroup)}}
		request := func(method string) func() { return a.changes.enter(&http.Request{Method: method}) }
		leave := request(http.MethodPost)
		request(http.MethodGet) // reads are not waited for
		ended := make(chan struct{})
		go func() {
			a.Drain(t.Context())
			close(ended)
		}()
		synctest.Wait()
		request(http.MethodPut) // too late to be waited for
		select {
		case <-ended:
			t.Fatal("Drain returned while an earlier change was under way")
		default:
		}
		leave()
		<-ended
	})
}

func TestDrainWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &API{stopping: make(chan struct{}), changes: requestCount{underWay: new(sync.WaitGroup)}}
		leave := a.changes.enter(&http.Request{Method: http.MethodPost})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		a.Drain(ctx)
		leave()
	})
}

func TestAServerThatStartsIsAliveAndSaysWhyItIsNotReady(t *testing.T) {
	s := new(Server)
	for path, want := range map[string]struct {
		status int
		text   string
	}{"/healthz": {http.StatusOK, "ok"}, "/readyz": {http.StatusServiceUnavailable, "the server is starting"}} {
		w := httptest.NewRecorder()
		s.serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%s answers %d: %s", path, w.Code, w.Body)
		}
	}
}
