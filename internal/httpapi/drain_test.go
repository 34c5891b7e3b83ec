package httpapi

import (
	"context"
	"net/http"
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
