package mx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare/internal/clock"
)

func exchangers(hosts ...string) []*net.MX {
	records := make([]*net.MX, len(hosts))
	for i, host := range hosts {
		records[i] = &net.MX{Host: host, Pref: uint16(10 * (i + 1))}
	}
	return records
}

func TestSiteIsTheOperatorOfTheExchangers(t *testing.T) {
	for _, c := range []struct {
		domain string
		hosts  []string
		want   string
	}{
		{"gmail.com", []string{"gmail-smtp-in.l.google.com.", "alt1.gmail-smtp-in.l.google.com."}, "google.com"},
		{"bakery.example", []string{"ASPMX.L.GOOGLE.COM."}, "google.com"},
		{"school.example", []string{"school-example.mail.protection.outlook.com."}, "outlook.com"},
		{"council.gov.uk", []string{"mx1.council.gov.uk."}, "council.gov.uk"},
		{"backup.example", []string{"mx.own.example.", "mx.of-others.example."}, "own.example"},
		{"none.example", []string{"."}, "none.example"},
		{"lab.example", []string{"mailhost."}, "mailhost"},
	} {
		if got := siteOf(c.domain, exchangers(c.hosts...)); got != c.want {
			t.Errorf("%s has the site %s, want %s", c.domain, got, c.want)
		}
	}
	same := []*net.MX{{Host: "a.zoho.eu.", Pref: 10}, {Host: "b.mail.example.", Pref: 10}}
	if one, other := siteOf("x.example", same), siteOf("x.example", []*net.MX{same[1], same[0]}); one != other || one != "mail.example" {
		t.Errorf("the order of the answer decides: %s and %s", one, other)
	}
}

// dns answers the lookups of a test.
type dns struct {
	asked   atomic.Int64
	answers map[string][]*net.MX
	broken  atomic.Bool
}

func (d *dns) lookup(ctx context.Context, domain string) ([]*net.MX, error) {
	d.asked.Add(1)
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d.broken.Load() {
		return nil, &net.DNSError{Err: "server misbehaving", Name: domain, IsTemporary: true}
	}
	if records := d.answers[domain]; records != nil {
		return records, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: domain, IsNotFound: true}
}

// told reports whether a domain has a site.
func told(s *Sites, domain, site string) error {
	if got := s.Of(domain); got != site {
		return fmt.Errorf("the site of %s is %s, want %s", domain, got, site)
	}
	return nil
}

func TestLookupIsCachedForItsLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dns{answers: map[string][]*net.MX{"a.example": exchangers("mx.one.example."), "b.example": exchangers("mx.one.example.")}}
		s := New(Options{LookupMX: d.lookup, Clock: clock.System{}})
		defer s.Stop()
		err := told(s, "a.example", "a.example") // not known yet
		s.Await(t.Context(), []string{"a.example", "b.example", "c.example", "a.example"})
		err = errors.Join(err, told(s, "a.example", "one.example"), told(s, "b.example", "one.example"), told(s, "c.example", "c.example"))
		if n := d.asked.Load(); n != 3 || err != nil {
			t.Errorf("three domains took %d look-ups: %v", n, err)
		}
		<-time.After(goodFor - time.Second)
		s.Await(t.Context(), []string{"a.example"})
		if n := d.asked.Load(); n != 3 {
			t.Errorf("%d look-ups while the answers were good", n)
		}
		d.answers["a.example"] = exchangers("mx.two.example.")
		<-time.After(2 * time.Second)
		err = told(s, "a.example", "one.example") // what was known serves until there is news
		<-time.After(time.Second)
		if err = errors.Join(err, told(s, "a.example", "two.example")); err != nil {
			t.Error(err)
		}
	})
}

func TestFailedLookupKeepsTheOldAnswerAndIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dns{answers: map[string][]*net.MX{"a.example": exchangers("mx.one.example."), "b.example": exchangers("mx.one.example.")}}
		s := New(Options{LookupMX: d.lookup, Clock: clock.System{}})
		defer s.Stop()
		s.Await(t.Context(), []string{"a.example"})
		d.broken.Store(true)
		<-time.After(goodFor + time.Second)
		s.Await(t.Context(), []string{"a.example", "b.example"})
		<-time.After(time.Second)
		err := errors.Join(told(s, "a.example", "one.example"), told(s, "b.example", "b.example"))
		d.broken.Store(false)
		<-time.After(failedFor)
		s.Of("b.example")
		<-time.After(time.Second)
		if err = errors.Join(err, told(s, "b.example", "one.example")); err != nil {
			t.Error(err)
		}
	})
}

func TestLookupsAndCacheAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dns{}
		s := New(Options{LookupMX: d.lookup, Clock: clock.System{}})
		all := make([]string, maxAsked+500)
		for i := range all {
			all[i] = fmt.Sprintf("d%d.example", i)
		}
		s.Await(t.Context(), all)
		if n := d.asked.Load(); n != maxAsked {
			t.Errorf("%d look-ups at once, at most %d may be", n, maxAsked)
		}
		for i := range maxKnown {
			s.known[fmt.Sprint(i)] = &site{name: "x", until: time.Now().Add(time.Hour)}
		}
		before := len(s.known)
		s.Await(t.Context(), all[maxAsked:])
		if len(s.known) > before {
			t.Errorf("%d domains are kept, %d before", len(s.known), before)
		}
		waited, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		s.Await(waited, []string{"late.example"}) // and not until its answer
		s.Stop()
		if got := s.Of("after.example"); got != "after.example" {
			t.Errorf("a stopped one says %s", got)
		}
	})
}
