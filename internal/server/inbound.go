package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/mail/inbound"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// A taker keeps what follows from an arrival, and returns when that is durable.
type taker interface {
	Take(ctx context.Context, a bounce.Arrival) error
}

// listenInbound binds the address at which mail comes in; nil where none does.
func (a *App) listenInbound(outlets *outlets, others taker) (*inbound.Server, error) {
	c := &a.config
	if c.Inbound == "" {
		return nil, nil
	}
	var secured *tls.Config
	if c.InboundTLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.InboundTLSCert, c.InboundTLSKey)
		if err != nil {
			return nil, fmt.Errorf("inbound_tls_cert: %w", err)
		}
		secured = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	}
	wishes := &wishes{registry: outlets.registry, store: outlets.store, others: others}
	people := &letterbox{dir: filepath.Join(c.DataDir, letterboxDir), clock: a.clock}
	return inbound.Listen(inbound.Options{
		Address: c.Inbound, Name: c.InboundHello(), Domains: c.InboundDomains, TLS: secured,
		Verify: outlets.returns.VerifyReturn, Take: wishes.Take, Keep: people.keep, Clock: a.clock, Logger: a.log,
	})
}

// wishes ends what mails to unsubscribe ask for, and leaves all else to others.
type wishes struct {
	registry *registry.Registry
	store    *deliveries.Store
	others   taker
}

// Take ends all subscriptions that led to a message, as the link in it does. It is
// idempotent. Where the message is not known any more there is nothing to end.
func (w *wishes) Take(ctx context.Context, a bounce.Arrival) error {
	if a.Kind != bounce.Unsubscribe {
		return w.others.Take(ctx, a)
	}
	ref := a.Delivery
	manifest, err := w.store.Manifest(ctx, ref.Day, ref.Manifest)
	if err != nil || manifest == nil {
		return unlessGone(err)
	}
	_, member, ok := manifest.At(ref.Position)
	if !ok {
		return nil
	}
	posted, err := w.store.Posted(ctx, fanfare.EventRef{Day: ref.Day, Seq: ref.Manifest.Event()})
	if err != nil || posted == nil {
		return unlessGone(err)
	}
	ctx = registry.As(ctx, registry.Actor{KeyName: "recipient"})
	_, err = w.registry.EndTogether(ctx, posted.Service, member.Subscriptions, registry.Ending{Source: registry.SourceMail, Text: "unsubscribed by mail"})
	return unlessGone(err)
}

// unlessGone is nil for what is not there.
func unlessGone(err error) error {
	if fanfare.CodeOf(err) == fanfare.NotFound {
		return nil
	}
	return err
}

const (
	// letterboxDir has, in the data directory, what came for postmaster and abuse.
	letterboxDir = "postmaster"
	// maxLetters is how many of them are kept: the newest.
	maxLetters = 200
)

// A letterbox keeps mails for people, each a file.
type letterbox struct {
	dir   string
	clock clock.Clock

	mu    sync.Mutex
	count int
}

// keep returns when the message is on disk.
func (l *letterbox) keep(message []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	all, err := l.letters()
	if err != nil {
		return err
	}
	for len(all) >= maxLetters {
		if err := os.Remove(filepath.Join(l.dir, all[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		all = all[1:]
	}
	l.count++
	name := fmt.Sprintf("%s-%03d.eml", l.clock.Now().Format("20060102T150405.000000000"), l.count%1000)
	return datadir.WriteFile(filepath.Join(l.dir, name), message)
}

// letters lists what is kept, the oldest first.
func (l *letterbox) letters() (all []string, err error) {
	entries, err := os.ReadDir(l.dir) // sorted by name
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".eml") {
			all = append(all, entry.Name())
		}
	}
	return all, err
}

// inboundStatus is what came in; nil where no mail does.
func inboundStatus(s *inbound.Server) *wire.Inbound {
	if s == nil {
		return nil
	}
	c := s.Counts()
	return &wire.Inbound{
		Listen: s.Addr().String(), Open: c.Open, Taken: c.Taken, Bounces: c.Bounces, Unsubscribes: c.Unsubscribes,
		Kept: c.Kept, NotNow: c.NotNow, Refused: c.Refused,
	}
}

// inboundMetrics adds what is counted of mail that comes in.
func inboundMetrics(s *inbound.Server, to *prometheus.Registry) {
	to.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fanfare_inbound_sessions", Help: "Open connections of the inbound mail server.",
	}, func() float64 { return float64(s.Counts().Open) }))
	for result, count := range map[string]func(inbound.Counts) int64{
		"taken":   func(c inbound.Counts) int64 { return c.Taken },
		"not_now": func(c inbound.Counts) int64 { return c.NotNow },
		"large":   func(c inbound.Counts) int64 { return c.TooLarge },
	} {
		to.MustRegister(inboundCounter(s, "fanfare_inbound_messages_total", "Messages that were sent to the inbound mail server, since the start, by what was answered.", "result", result, count))
	}
	for kind, count := range map[string]func(inbound.Counts) int64{
		"bounce":      func(c inbound.Counts) int64 { return c.Bounces },
		"unsubscribe": func(c inbound.Counts) int64 { return c.Unsubscribes },
		"ignored":     func(c inbound.Counts) int64 { return c.Ignored },
		"person":      func(c inbound.Counts) int64 { return c.Kept },
	} {
		to.MustRegister(inboundCounter(s, "fanfare_inbound_arrivals_total", "What came in by mail, since the start, by whom it was for; ignored are automatic answers where wishes to unsubscribe go.", "kind", kind, count))
	}
	for reason, count := range map[string]func(inbound.Counts) int64{
		"limit":     func(c inbound.Counts) int64 { return c.TurnedAway },
		"recipient": func(c inbound.Counts) int64 { return c.Refused },
		"broken":    func(c inbound.Counts) int64 { return c.Broken },
	} {
		to.MustRegister(inboundCounter(s, "fanfare_inbound_refused_total", "What the inbound mail server refused, since the start: connections beyond a limit, recipients that are nobody, sessions ended for broken lines.", "reason", reason, count))
	}
}

func inboundCounter(s *inbound.Server, name, help, label, value string, count func(inbound.Counts) int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{label: value}},
		func() float64 { return float64(count(s.Counts())) })
}

// serveInbound takes mail until Stop.
func (a *App) serveInbound(s *inbound.Server) {
	if s == nil {
		return
	}
	go s.Serve()
	a.later(func() error { return s.Stop(max(a.config.DrainTimeout, time.Second)) })
	a.log.Info("mail is taken", "listen", s.Addr().String(), "domains", a.config.InboundDomains)
}
