// Package mx finds the site of a domain: the provider whose mail exchangers receive its mail.
// Thousands of domains at one provider share the limits of the provider, so limits are kept per
// site.
package mx

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"

	"fanfare.dev/fanfare/internal/clock"
)

// Limits of lookups and of memory.
const (
	maxKnown  = 100_000         // domains; above this, arbitrary ones are evicted
	maxAsked  = 1_000           // pending lookups
	atOnce    = 32              // concurrent lookups
	patience  = 5 * time.Second // timeout of one lookup
	goodFor   = time.Hour       // age of an answer; the Go resolver does not return the TTL
	failedFor = time.Minute     // age of a failed lookup
)

// Options are the settings of Sites.
type Options struct {
	// LookupMX returns the mail exchangers of a domain, as net.Resolver does.
	LookupMX func(ctx context.Context, domain string) ([]*net.MX, error)
	Clock    clock.Clock
}

// Sites caches the sites of domains. It is safe for concurrent use.
type Sites struct {
	options Options
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	turn    chan struct{}

	mu    sync.Mutex
	known map[string]*site // by domain
	asked int
}

// site is the cached site of a domain.
type site struct {
	name  string // "" while unknown
	until time.Time
	asked chan struct{} // closed when the lookup ends; nil if none was started
}

// New returns Sites with an empty cache.
func New(options Options) *Sites {
	s := &Sites{options: options, turn: make(chan struct{}, atOnce), known: map[string]*site{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Stop ends the running lookups.
func (s *Sites) Stop() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.running.Wait()
}

// Of returns the site of a domain without waiting: the domain itself if its site is not known yet.
// It looks up unknown and outdated domains in the background.
func (s *Sites) Of(domain string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.look(domain); one != nil {
		return cmp.Or(one.name, domain)
	}
	return domain
}

// Await looks up all unknown domains and waits for the answers until ctx ends.
func (s *Sites) Await(ctx context.Context, domains []string) {
	var open []<-chan struct{}
	s.mu.Lock()
	for _, domain := range domains {
		if one := s.look(domain); one != nil && one.name == "" && one.asked != nil {
			open = append(open, one.asked)
		}
	}
	s.mu.Unlock()
	for _, answered := range open {
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
	}
}

// look returns the cached site of a domain and starts a lookup if it is missing or outdated. It
// returns nil if too many lookups are pending. The caller holds mu.
func (s *Sites) look(domain string) *site {
	one := s.known[domain]
	if one != nil && (one.asked != nil || s.options.Clock.Now().Before(one.until)) {
		return one
	}
	if s.asked == maxAsked || s.ctx.Err() != nil {
		return one
	}
	if one == nil {
		if len(s.known) >= maxKnown {
			s.forget()
		}
		one = &site{}
		s.known[domain] = one
	}
	one.asked = make(chan struct{})
	s.asked++
	s.running.Go(func() { s.ask(domain, one) })
	return one
}

// forget makes space for one more site.
func (s *Sites) forget() {
	for domain, one := range s.known {
		if one.asked == nil {
			delete(s.known, domain)
			return
		}
	}
}

// ask looks up a domain and caches the answer. If the lookup fails, the cached answer stays.
func (s *Sites) ask(domain string, one *site) {
	s.turn <- struct{}{}
	name, err := s.lookup(domain)
	<-s.turn
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Clock.Now()
	if err != nil {
		one.name, one.until = cmp.Or(one.name, domain), now.Add(failedFor)
	} else {
		one.name, one.until = name, now.Add(goodFor)
	}
	close(one.asked)
	one.asked = nil
	s.asked--
}

// lookup returns the site whose mail exchangers receive the mail of a domain.
func (s *Sites) lookup(domain string) (string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	records, err := s.options.LookupMX(ctx, domain)
	var answer *net.DNSError
	switch {
	case len(records) > 0: // invalid records cause an error in addition to the valid ones
		return siteOf(domain, records), nil
	case err == nil, errors.As(err, &answer) && answer.IsNotFound:
		return domain, nil // the domain's own address receives the mail: RFC 5321, section 5.1
	}
	return "", err
}

// siteOf returns the registrable domain of the exchangers with the highest priority, or the first
// by name if they belong to several.
func siteOf(domain string, records []*net.MX) string {
	first := slices.MinFunc(records, func(a, b *net.MX) int {
		return cmp.Or(cmp.Compare(a.Pref, b.Pref), strings.Compare(registered(a.Host), registered(b.Host)))
	})
	// A single dot means that the domain receives no mail (RFC 7505).
	return cmp.Or(registered(first.Host), domain)
}

func registered(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if name, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return name
	}
	return host
}
