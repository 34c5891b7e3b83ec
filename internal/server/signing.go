package server

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cache"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/registry"
)

// keys are those with which a channel signs. What does not leave is not signed, so
// that a stage needs none of them.
func (c captured) keys(of *registry.Channel) []dkimkeys.Read {
	if c.all() {
		return nil
	}
	return dkimkeys.ReadAll(of)
}

// checkKey says what is wrong with a key that a channel is to have.
func (c captured) checkKey(of *registry.Channel, key *registry.DKIMKey) error {
	if c.all() {
		return nil
	}
	_, err := dkimkeys.ReadOne(of, key)
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		wrong := *e
		wrong.Code = fanfare.Invalid // as what is applied: the key can be put there first
		return &wrong
	}
	return err
}

// signFrom has what is written from now on signed by the keys whose time it is. Where
// they are others than before, what was kept of messages is forgotten: it is signed.
func (l *loader) signFrom(now time.Time) {
	signers := dkim.At(l.keys.All(), now)
	if !slices.Equal(signers, l.signers) {
		l.mailings = cache.Cache[mailingKey, *mailing]{}
	}
	l.signers = signers
	l.signing.Begin(signers, now)
}

// sign makes the signatures of what was written. Where that fails, no message that is
// kept for others may be taken for signed.
func (l *loader) sign() error {
	err := l.signing.Finish()
	if err != nil {
		l.mailings = cache.Cache[mailingKey, *mailing]{}
	}
	return err
}

// signatureMetrics count by key. There are as many of them as are configured.
type signatureMetrics struct{ reports *reports }

var signaturesMade = prometheus.NewDesc("fanfare_dkim_signatures_total", "Signatures made since the key was read.", []string{"service", "channel", "domain", "selector"}, nil)

// Describe names the metric.
func (signatureMetrics) Describe(to chan<- *prometheus.Desc) { to <- signaturesMade }

// Collect asks each outlet.
func (m signatureMetrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.reports.registry.Channels() {
		out := m.reports.outlets.of(c.Number)
		if out == nil {
			continue
		}
		for _, k := range out.keys.All() {
			to <- prometheus.MustNewConstMetric(signaturesMade, prometheus.CounterValue, float64(k.Made()), c.Service, c.Name, k.Domain, k.Selector)
		}
	}
}
