// Package mx finds out whose mail exchangers take the mail of a domain. Ten
// thousand domains whose mail goes to one provider share what that provider lets
// through: a limit that is kept for each of them would be ten thousand limits.
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

// Bounds of what is asked and kept.
const (
	maxKnown  = 100_000         // domains; beyond, any is forgotten
	maxAsked  = 1_000           // look-ups begun and not answered
	atOnce    = 32              // questions on their way
	patience  = 5 * time.Second // with one answer
	goodFor   = time.Hour       // an answer; the resolver of Go does not tell its TTL
	failedFor = time.Minute     // a look-up that failed
)

// Options say whom sites are asked of.
type Options struct {
	// LookupMX asks for the mail exchangers of a domain, as net.Resolver does.
	LookupMX func(ctx context.Context, domain string) ([]*net.MX, error)
	Clock    clock.Clock
}

// Sites knows the sites of domains that it was asked for. It is safe for
// concurrent use.
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

// site is what is known of a domain.
type site struct {
	name  string // "" while nothing is known
	until time.Time
	asked chan struct{} // closed when the answer is there; nil: nothing was asked
}

// New returns sites of which nothing is known yet.
func New(options Options) *Sites {
	s := &Sites{options: options, turn: make(chan struct{}, atOnce), known: map[string]*site{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Stop ends the look-ups that are under way.
func (s *Sites) Stop() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.running.Wait()
}

// Of returns the site of a domain without waiting: the domain itself if its site is not known
// yet. It looks unknown and outdated domains up in the background.
func (s *Sites) Of(domain string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.look(domain); one != nil {
		return cmp.Or(one.name, domain)
	}
	return domain
}

// Await looks up all domains that are not known and waits for the answers, as long
// as ctx allows.
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

// look returns what is known of a domain, after it has asked for what is not; nil
// if too much is asked already. The caller holds mu.
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

// ask looks a domain up and keeps the answer. If the lookup fails, the known answer stays.
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

// lookup asks whose mail exchangers take the mail of a domain.
func (s *Sites) lookup(domain string) (string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	records, err := s.options.LookupMX(ctx, domain)
	var answer *net.DNSError
	switch {
	case len(records) > 0: // records that cannot be read come as an error beside the others
		return siteOf(domain, records), nil
	case err == nil, errors.As(err, &answer) && answer.IsNotFound:
		return domain, nil // the mail goes to the domain's own address: RFC 5321, section 5.1
	}
	return "", err
}

// siteOf names the organisation whose exchangers come first: the part of their name
// that one can register. Of several organisations it is the first by name.
func siteOf(domain string, records []*net.MX) string {
	first := slices.MinFunc(records, func(a, b *net.MX) int {
		return cmp.Or(cmp.Compare(a.Pref, b.Pref), strings.Compare(registered(a.Host), registered(b.Host)))
	})
	// A lone dot says that the domain takes no mail: RFC 7505.
	return cmp.Or(registered(first.Host), domain)
}

func registered(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if name, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return name
	}
	return host
}
