package server

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/registry"
)

// problemsOf is what a channel has that cannot be used now: keys, passwords and secrets.
func (o *outlets) problemsOf(c *registry.Channel) (all []wire.ChannelProblem) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.open[c.Number]
	if out == nil {
		return nil
	}
	now := o.clock.Now()
	signers := dkim.At(out.keys.All(), now)
	names := make([]string, len(signers))
	for i, key := range signers {
		names[i] = key.Name()
	}
	signing := "no mail is signed"
	if len(names) > 0 {
		signing = "mail is signed with " + strings.Join(names, " and ")
	}
	held := dkimkeys.Unsigned(out.keys.All(), out.keys.Broken(), now) != nil
	for _, b := range out.keys.Broken() {
		all = append(all, brokenProblem(&b, signing, held))
	}
	for _, key := range out.keys.All() {
		if key.Waits && !key.From.After(now) {
			all = append(all, wire.ChannelProblem{
				Kind: "dkim_record", Domain: key.Domain, Selector: key.Selector,
				Error: "the DKIM key " + key.Name() + " waits: " + o.records.WhyMissing(key) + "; until it is seen there, " + signing,
				Hint:  "add to the DNS: " + key.ZoneLine(),
			})
		}
	}
	return append(all, out.problems...)
}

func brokenProblem(b *dkimkeys.Broken, signing string, held bool) wire.ChannelProblem {
	key := dkim.Key{Domain: b.Domain, Selector: b.Selector}
	p := wire.ChannelProblem{Kind: "dkim_key", Domain: b.Domain, Selector: b.Selector, File: b.KeyFile}
	from := "the environment variable " + b.KeyEnv
	if b.KeyFile != "" {
		from = "the file " + b.KeyFile
	}
	p.Error = "the DKIM key " + key.Name() + " in " + from + " cannot be used: " + messageOf(b.Err) + "; "
	switch {
	case held:
		p.Error += "no other key may sign now, and mail waits"
	case b.Kept:
		p.Error += "until the next start it is used as it was read before"
	default:
		p.Error += signing
	}
	p.Hint = "put the key back, readable for the user of the server, which is noticed within seconds; or make another with fanfare dkim new " + b.Domain + " and name it in the channel"
	return p
}

// messageOf is an error without the place in a document and the hint.
func messageOf(err error) string {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err.Error()
	}
	return e.Message
}

// lookAtSecrets tries to read the passwords and secrets of all channels, as the next
// start will.
func (o *outlets) lookAtSecrets() {
	if o.captured.all() {
		return
	}
	for _, c := range o.registry.Channels() {
		found := secretProblems(c)
		o.mu.Lock()
		if out := o.open[c.Number]; out != nil {
			for _, p := range found {
				if !knownProblem(out.problems, &p) {
					o.logger.Error("a channel has a secret that cannot be read", "channel", c.Service+"/"+c.Name, "kind", p.Kind, "file", p.File, "error", p.Error)
				}
			}
			out.problems = found
		}
		o.mu.Unlock()
	}
}

func knownProblem(all []wire.ChannelProblem, p *wire.ChannelProblem) bool {
	for i := range all {
		if all[i] == *p {
			return true
		}
	}
	return false
}

// secretProblems are the passwords and secrets of a channel that cannot be read.
func secretProblems(c *registry.Channel) (all []wire.ChannelProblem) {
	try := func(kind, file, effect string, read func() (string, error)) {
		_, err := read()
		if err == nil {
			return
		}
		p := wire.ChannelProblem{Kind: kind, File: file, Error: messageOf(err) + "; " + effect, Hint: "make it readable for the user of the server"}
		if !knownProblem(all, &p) {
			all = append(all, p)
		}
	}
	const atStart = "the server uses what it has read before, and the channel cannot send after the next start"
	switch c.Driver {
	case "smtp":
		for _, hop := range c.Hops() {
			try("password", hop.Channel.PasswordFile, atStart, hop.Channel.Password)
		}
	case "webhook":
		try("secret", c.SecretFile, atStart, c.Secrets)
	}
	if c.Receipts.SecretEnv+c.Receipts.SecretFile != "" {
		try("receipts", c.Receipts.SecretFile, "receipts of the provider are refused", c.ReceiptSecrets)
	}
	return all
}

// problemMetrics count problems by channel.
type problemMetrics struct{ reports *reports }

var secretsUnusable = prometheus.NewDesc("fanfare_channel_unusable_secrets", "Private keys, passwords and secrets of the channel that cannot be read or used now; fanfare status names them.", []string{"service", "channel"}, nil)

// Describe names the metric.
func (problemMetrics) Describe(to chan<- *prometheus.Desc) { to <- secretsUnusable }

// Collect asks each channel.
func (m problemMetrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.reports.registry.Channels() {
		n := 0
		for _, p := range m.reports.outlets.problemsOf(c) {
			if p.Kind != "dkim_record" {
				n++
			}
		}
		to <- prometheus.MustNewConstMetric(secretsUnusable, prometheus.GaugeValue, float64(n), c.Service, c.Name)
	}
}
