package channels

import (
	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
)

var (
	channelLabels = []string{"service", "channel"}
	relayLabels   = []string{"service", "channel", "relay", "node"}

	relayUp              = prometheus.NewDesc("fanfare_relay_up", "1 if messages can be sent through the relay, 0 if it is down, drained or unused.", relayLabels, nil)
	relayShare           = prometheus.NewDesc("fanfare_relay_share", "Share of the channel's connections that the relay may currently use, from 0 to 1.", relayLabels, nil)
	relayConnections     = prometheus.NewDesc("fanfare_relay_connections", "Open connections to the relay.", relayLabels, nil)
	relayAccepted        = prometheus.NewDesc("fanfare_relay_accepted_total", "Messages accepted by the relay since the server started.", relayLabels, nil)
	relayErrors          = prometheus.NewDesc("fanfare_relay_errors_total", "Errors of the relay since the server started: lost messages, refusals caused by the relay itself, and lost connections.", relayLabels, nil)
	relaySeconds         = prometheus.NewDesc("fanfare_relay_seconds", "Time that the relay needs for one message, over the last 30 seconds.", []string{"service", "channel", "relay", "node", "quantile"}, nil)
	signaturesMade       = prometheus.NewDesc("fanfare_dkim_signatures_total", "Signatures created since the key was loaded.", []string{"service", "channel", "domain", "selector"}, nil)
	secretsUnusable      = prometheus.NewDesc("fanfare_channel_unusable_secrets", "Private keys, passwords and secrets of the channel that currently cannot be read or used; fanfare status lists them.", channelLabels, nil)
	impairedDestinations = prometheus.NewDesc("fanfare_destinations_impaired", "Destinations that are not healthy, by worst state: suspended, slow or limited.", []string{"service", "channel", "state"}, nil)
	answersByClass       = prometheus.NewDesc("fanfare_answers_total", "Attempts that were not accepted since the server started, by reply class.", []string{"class"}, nil)
	replyRulesRefused    = prometheus.NewDesc("fanfare_reply_rules_refused", "1 if the file set in reply_rules cannot be used.", nil, nil)
)

// Describe sends the metrics of channels. Their number depends on the configuration, not on the
// number of destinations.
func (c *Channels) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{relayUp, relayShare, relayConnections, relayAccepted, relayErrors, relaySeconds, signaturesMade, secretsUnusable, impairedDestinations, answersByClass, replyRulesRefused} {
		to <- d
	}
}

// Collect sends the values of all channels.
func (c *Channels) Collect(to chan<- prometheus.Metric) {
	for _, conf := range c.parts.Registry.Channels() {
		c.collectRelays(to, conf)
		unusable := 0
		for _, p := range c.Problems(conf) {
			if p.Kind != "dkim_record" {
				unusable++
			}
		}
		to <- prometheus.MustNewConstMetric(secretsUnusable, prometheus.GaugeValue, float64(unusable), conf.Service, conf.Name)
		ch := c.of(conf.Number)
		if ch == nil {
			continue
		}
		for _, k := range ch.keys.All() {
			to <- prometheus.MustNewConstMetric(signaturesMade, prometheus.CounterValue, float64(k.Made()), conf.Service, conf.Name, k.Domain, k.Selector)
		}
		impaired := ch.CountImpaired()
		for _, state := range deliver.DestinationStates {
			to <- prometheus.MustNewConstMetric(impairedDestinations, prometheus.GaugeValue, float64(impaired[state]), conf.Service, conf.Name, string(state))
		}
	}
	for i := range c.replies.counts {
		class := "none"
		if i < len(fanfare.Classes) {
			class = string(fanfare.Classes[i])
		}
		to <- prometheus.MustNewConstMetric(answersByClass, prometheus.CounterValue, float64(c.replies.counts[i].Load()), class)
	}
	refused := 0.0
	if c.replies.fault.Load() != nil {
		refused = 1
	}
	to <- prometheus.MustNewConstMetric(replyRulesRefused, prometheus.GaugeValue, refused)
}

func (c *Channels) collectRelays(to chan<- prometheus.Metric, conf *catalog.Channel) {
	status := c.Status(conf.Number)
	for i := range status.Relays {
		r := &status.Relays[i]
		send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, more ...string) {
			to <- prometheus.MustNewConstMetric(desc, kind, value, append([]string{conf.Service, conf.Name, r.Name, r.Node}, more...)...)
		}
		up := 0.0
		if r.State == deliver.RelayUp || r.State == deliver.RelayDoubted {
			up = 1
		}
		send(relayUp, prometheus.GaugeValue, up)
		send(relayShare, prometheus.GaugeValue, r.Share)
		send(relayConnections, prometheus.GaugeValue, float64(r.Connections))
		send(relayAccepted, prometheus.CounterValue, float64(r.Accepted))
		send(relayErrors, prometheus.CounterValue, float64(r.Errors))
		send(relaySeconds, prometheus.GaugeValue, r.P50.Seconds(), "0.5")
		send(relaySeconds, prometheus.GaugeValue, r.P99.Seconds(), "0.99")
	}
}
