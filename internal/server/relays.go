package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
)

// relaysOf is what people see of the next hops of a channel.
func relaysOf(of *deliver.Status) []wire.RelayStatus {
	all := make([]wire.RelayStatus, len(of.Relays))
	for i := range of.Relays {
		r := &of.Relays[i]
		all[i] = wire.RelayStatus{
			Name: r.Name, State: string(r.State), Weight: r.Weight, Share: r.Share, Connections: r.Connections,
			Accepted: r.Taken, Errors: r.Errors, P50Millis: millis(r.P50), P99Millis: millis(r.P99), LastError: r.LastError,
		}
	}
	return all
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// relayMetrics are the counters of the next hops of all channels. There are as
// many of them as are configured.
type relayMetrics struct{ reports *reports }

func relayMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"service", "channel", "relay"}, nil)
}

var (
	relayUp          = relayMetric("fanfare_relay_up", "1 while letters may leave by the relay, 0 while it is down, drained or unused.")
	relayShare       = relayMetric("fanfare_relay_share", "Share of the channel's connections that the relay may have now, 0 to 1.")
	relayConnections = relayMetric("fanfare_relay_connections", "Connections to the relay that are open.")
	relayAccepted    = relayMetric("fanfare_relay_accepted_total", "Messages that the relay took since the start.")
	relayErrors      = relayMetric("fanfare_relay_errors_total", "Messages that the relay lost or refused for reasons of its own, and connections to it that were lost, since the start.")
	relaySeconds     = prometheus.NewDesc("fanfare_relay_seconds", "How long a message takes the relay, over the last half minute.", []string{"service", "channel", "relay", "quantile"}, nil)
)

// Describe names the metrics.
func (relayMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{relayUp, relayShare, relayConnections, relayAccepted, relayErrors, relaySeconds} {
		to <- d
	}
}

// Collect asks each outlet.
func (m relayMetrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.reports.registry.Channels() {
		out := m.reports.outlets.status(c.Number)
		for i := range out.Relays {
			r := &out.Relays[i]
			gauge := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, more ...string) {
				to <- prometheus.MustNewConstMetric(desc, kind, value, append([]string{c.Service, c.Name, r.Name}, more...)...)
			}
			up := 0.0
			if r.State == deliver.RelayUp || r.State == deliver.RelayDoubted {
				up = 1
			}
			gauge(relayUp, prometheus.GaugeValue, up)
			gauge(relayShare, prometheus.GaugeValue, r.Share)
			gauge(relayConnections, prometheus.GaugeValue, float64(r.Connections))
			gauge(relayAccepted, prometheus.CounterValue, float64(r.Taken))
			gauge(relayErrors, prometheus.CounterValue, float64(r.Errors))
			gauge(relaySeconds, prometheus.GaugeValue, r.P50.Seconds(), "0.5")
			gauge(relaySeconds, prometheus.GaugeValue, r.P99.Seconds(), "0.99")
		}
	}
}
