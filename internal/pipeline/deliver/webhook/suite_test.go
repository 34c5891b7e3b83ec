package webhook

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/delivertest"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestTheDriverKeepsTheContractOverEachProtocol(t *testing.T) {
	for _, protocol := range []string{"http", "https", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel() // it waits for silent next hops
			delivertest.Run(t, func(t *testing.T, timeout time.Duration) *delivertest.Fixture { return fixture(t, protocol, timeout) })
		})
	}
}

func TestTheDriverKeepsTheContractOnAnotherNode(t *testing.T) {
	t.Parallel() // it waits for silent next hops
	delivertest.Run(t, func(t *testing.T, timeout time.Duration) *delivertest.Fixture {
		f := fixture(t, "https", timeout)
		f.Driver = delivertest.Elsewhere(t, f.Driver)
		return f
	})
}

func fixture(t *testing.T, protocol string, timeout time.Duration) *delivertest.Fixture {
	r := startReceiver(t, protocol)
	gate := &blockingDialer{}
	config := r.config()
	config.AllowNetworks, config.SendTimeout = nil, timeout
	drv := New(config)
	drv.transport.DialContext = gate.through(drv.transport.DialContext, config.ConnectTimeout)
	w := &delivertest.Fixture{
		Driver: drv, Relay: host(r.URL),
		Message: func(n int, text string) *driver.Message { return r.message(fmt.Sprintf("/%d", n), text) },
		Behaviours: []delivertest.Behaviour{
			delivertest.RefusesTemporarily, delivertest.RefusesPermanently, delivertest.DropsAfterBody, delivertest.NeverReplies, delivertest.DripsReply,
			delivertest.RepliesEarly, delivertest.Unreachable,
		},
		OnBody: func(f func([]byte)) { r.watch = f },
		Received: func() [][]byte {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.got
		},
	}
	w.SetBehaviour = func(b delivertest.Behaviour) {
		gate.closed.Store(b == delivertest.Unreachable)
		r.handle(map[delivertest.Behaviour]http.HandlerFunc{
			delivertest.Accepts:            r.take,
			delivertest.Unreachable:        r.take,
			delivertest.RefusesTemporarily: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusServiceUnavailable) },
			delivertest.RefusesPermanently: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone", http.StatusGone) },
			delivertest.DropsAfterBody: func(_ http.ResponseWriter, req *http.Request) {
				_, _ = io.ReadAll(req.Body)
				panic(http.ErrAbortHandler)
			},
			delivertest.NeverReplies: func(_ http.ResponseWriter, req *http.Request) {
				_, _ = io.ReadAll(req.Body)
				<-req.Context().Done()
			},
			delivertest.RepliesEarly: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInsufficientStorage) },
			delivertest.DripsReply: func(w http.ResponseWriter, req *http.Request) {
				beat := time.NewTicker(time.Millisecond)
				defer beat.Stop()
				for req.Context().Err() == nil {
					_, _ = w.Write([]byte("."))
					_ = http.NewResponseController(w).Flush()
					<-beat.C
				}
			},
		}[b])
	}
	return w
}
