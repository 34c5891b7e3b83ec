package feedback

import (
	"strings"
	"sync"
	"sync/atomic"

	"fanfare.dev/fanfare/internal/mail/signedlink"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/bounce"
)

// Counters count the reports since the server started, by outcome and class.
type Counters struct {
	mu      sync.Mutex
	counts  map[counterKey]float64
	unknown atomic.Int64 // about deliveries that are no longer stored
}

type counterKey struct {
	outcome bounce.Outcome
	class   fanfare.Class
}

func (c *Counters) add(outcome bounce.Outcome, class fanfare.Class) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[counterKey]float64{}
	}
	c.counts[counterKey{outcome, class}]++
}

var (
	returnsTotal   = prometheus.NewDesc("fanfare_returns_total", "Reports about sent messages since the server started, by kind; failures and delays also by class.", []string{"kind", "class"}, nil)
	returnsUnknown = prometheus.NewDesc("fanfare_returns_unknown_total", "Returned messages without effect because their delivery is no longer in the store.", nil, nil)
)

// Describe names the metrics.
func (c *Counters) Describe(to chan<- *prometheus.Desc) { to <- returnsTotal; to <- returnsUnknown }

// Collect reads the counters.
func (c *Counters) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if complaints := (counterKey{outcome: bounce.Complained}); c.counts[complaints] == 0 { // report it from the start: alerts need its rise
		to <- prometheus.MustNewConstMetric(returnsTotal, prometheus.CounterValue, 0, complaints.outcome.String(), "")
	}
	for key, n := range c.counts {
		to <- prometheus.MustNewConstMetric(returnsTotal, prometheus.CounterValue, n, key.outcome.String(), string(key.class))
	}
	to <- prometheus.MustNewConstMetric(returnsUnknown, prometheus.CounterValue, float64(c.unknown.Load()))
}

// signedDelivery finds the delivery in the signed parts of the original message that a report quotes: its return
// address and its unsubscribe link.
func signedDelivery(signer *signedlink.Signer, r *bounce.Report) (ref fanfare.DeliveryRef, shared, ok bool) {
	addresses := []string{r.ReturnPath}
	for _, uri := range r.Unsubscribe {
		if address, isMail := strings.CutPrefix(uri, "mailto:"); isMail {
			address, _, _ = strings.Cut(address, "?")
			addresses = append(addresses, address)
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
