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
			t.Parallel() // it waits for next hops that say nothing
			delivertest.Run(t, func(t *testing.T) *delivertest.World { return world(t, protocol) })
		})
	}
}

func world(t *testing.T, protocol string) *delivertest.World {
	r := receive(t, protocol)
	gate := &doorman{}
	config := r.config()
	config.AllowNetworks = nil
	drv := New(config)
	drv.transport.DialContext = gate.through(drv.transport.DialContext, config.ConnectTimeout)
	w := &delivertest.World{
		Driver: drv, Relay: host(r.URL),
		Message: func(n int, text string) *driver.Message { return r.message(fmt.Sprintf("/%d", n), text) },
		Knows: []delivertest.Behaviour{
			delivertest.RefusesForNow, delivertest.RefusesAll, delivertest.Drops, delivertest.Silent, delivertest.Drips,
			delivertest.Early, delivertest.Absent,
		},
		Watch: func(f func([]byte)) { r.watch = f },
		Got: func() [][]byte {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.got
		},
	}
	w.Behave = func(b delivertest.Behaviour) {
		gate.closed.Store(b == delivertest.Absent)
		r.handle(map[delivertest.Behaviour]http.HandlerFunc{
			delivertest.Takes:         r.take,
			delivertest.Absent:        r.take,
			delivertest.RefusesForNow: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusServiceUnavailable) },
			delivertest.RefusesAll:    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone", http.StatusGone) },
			delivertest.Drops: func(_ http.ResponseWriter, req *http.Request) {
				_, _ = io.ReadAll(req.Body)
				panic(http.ErrAbortHandler)
			},
			delivertest.Silent: func(_ http.ResponseWriter, req *http.Request) {
				_, _ = io.ReadAll(req.Body)
				<-req.Context().Done()
			},
			delivertest.Early: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInsufficientStorage) },
			delivertest.Drips: func(w http.ResponseWriter, req *http.Request) {
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
