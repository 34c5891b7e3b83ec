package server

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/mail/signedlink"
)

// A returnTally counts what came back since the start, by what it is and why.
type returnTally struct {
	mu      sync.Mutex
	of      map[returnKey]float64
	unknown atomic.Int64 // about a delivery that nobody knows any more
}

type returnKey struct {
	kind  bounce.Outcome
	class fanfare.Class
}

func (t *returnTally) add(kind bounce.Outcome, class fanfare.Class) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[returnKey]float64{}
	}
	t.of[returnKey{kind, class}]++
}

var (
	returnsTotal = prometheus.NewDesc("fanfare_returns_total", "What came back since the start, by kind, and of failed and delayed ones by class.", []string{"kind", "class"}, nil)
	returnsLost  = prometheus.NewDesc("fanfare_returns_unknown_total", "Of those that matter, how many were about a delivery that is not kept any more.", nil, nil)
)

// Describe names the metrics.
func (t *returnTally) Describe(out chan<- *prometheus.Desc) { out <- returnsTotal; out <- returnsLost }

// Collect reads the counters.
func (t *returnTally) Collect(out chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if complaints := (returnKey{kind: bounce.Complained}); t.of[complaints] == 0 { // there from the start: alarms rest on its rise
		out <- prometheus.MustNewConstMetric(returnsTotal, prometheus.CounterValue, 0, complaints.kind.String(), "")
	}
	for key, n := range t.of {
		out <- prometheus.MustNewConstMetric(returnsTotal, prometheus.CounterValue, n, key.kind.String(), string(key.class))
	}
	out <- prometheus.MustNewConstMetric(returnsLost, prometheus.CounterValue, float64(t.unknown.Load()))
}

// signedIn finds in what came back with a report something that was signed here:
// the return address of the message, or its unsubscribe link.
func signedIn(signer *signedlink.Signer, r *bounce.Report) (ref fanfare.DeliveryRef, shared, ok bool) {
	addresses := []string{r.ReturnPath}
	for _, uri := range r.Unsubscribe {
		if to, isMail := strings.CutPrefix(uri, "mailto:"); isMail {
			to, _, _ = strings.Cut(to, "?")
			addresses = append(addresses, to)
			continue
		}
		if link, err := signer.Verify(uri[strings.LastIndexByte(uri, '/')+1:]); err == nil {
			return link.Delivery, false, true
		}
	}
	for _, a := range addresses {
		local, _, _ := strings.Cut(a, "@")
		if _, ref, shared, err := signer.VerifyReturn(local); err == nil {
			return ref, shared, true
		}
	}
	return ref, false, false
}
