package deliver

import (
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/limit"
)

// Destinations are the limits of each of whom jobs go to.
type Destinations struct {
	Each DestinationLimit
	Only map[string]DestinationLimit // by name; what is zero in one is as in Each
	// Site names what a destination shares its limits with; nil: nothing. It must be
	// quick, and safe for concurrent use.
	Site func(name string) string
}

// A DestinationLimit bounds what goes to one destination.
type DestinationLimit struct {
	Rate        float64 // messages per second; 0: as much as it takes
	Connections int     // messages under way at once; 0: as many as it takes
}

// of returns what is configured for one destination.
func (s *Destinations) of(name string) DestinationLimit {
	own := s.Only[name]
	if own.Rate == 0 {
		own.Rate = s.Each.Rate
	}
	if own.Connections == 0 {
		own.Connections = s.Each.Connections
	}
	return own
}

const (
	// maxDestinations is how many are known at once; beyond, the one that was not
	// used for longest is forgotten, and is a stranger when it comes again.
	maxDestinations = 100_000
	// forgetAfter is how long one is known that is not used.
	forgetAfter = time.Hour
	// looks is how many are looked at for one that can be forgotten.
	looks = 16
)

// destinations are those that are known.
type destinations struct {
	settings *Destinations
	first    int // window of one of which nothing is known
	known    map[string]*destination
	newest   *destination
	oldest   *destination
	slow     int // jobs under way to slow ones
	slowOnes int
	unwell   map[*destination]struct{}
}

func (s *destinations) configure(settings *Destinations, first int, now time.Time) {
	s.settings, s.first = settings, first
	if s.known == nil {
		s.known = map[string]*destination{}
	}
	for name, d := range s.known {
		d.restrict(settings.of(name), now)
		s.note(d)
	}
}

// of returns the destination with a name, nil if that is empty.
func (s *destinations) of(name string, now time.Time) *destination {
	if name == "" {
		return nil
	}
	if s.settings.Site != nil && s.settings.Only[name] == (DestinationLimit{}) {
		name = s.settings.Site(name)
	}
	d := s.known[name]
	if d == nil {
		s.forget(now)
		own := s.settings.of(name)
		d = &destination{name: name, window: limit.NewWindow(s.first, own.Connections)}
		d.restrict(own, now)
		s.known[name] = d
	} else if d != s.newest {
		s.unlink(d)
	}
	if d != s.newest {
		s.link(d)
	}
	d.used = now
	return d
}

// forget makes room for one more.
func (s *destinations) forget(now time.Time) {
	d := s.oldest
	for range looks {
		if d == nil || len(s.known) < maxDestinations && now.Sub(d.used) < forgetAfter {
			return
		}
		newer := d.newer
		if d.underway == 0 && d.aside.len() == 0 && d.readied == 0 {
			s.unlink(d)
			s.judge(d, false)
			delete(s.known, d.name)
			delete(s.unwell, d)
		}
		d = newer
	}
}

func (s *destinations) link(d *destination) {
	d.older, d.newer = s.newest, nil
	if s.newest != nil {
		s.newest.newer = d
	} else {
		s.oldest = d
	}
	s.newest = d
}

func (s *destinations) unlink(d *destination) {
	if d.newer != nil {
		d.newer.older = d.older
	} else {
		s.newest = d.older
	}
	if d.older != nil {
		d.older.newer = d.newer
	} else {
		s.oldest = d.newer
	}
}

// count counts what is under way to one.
func (s *destinations) count(d *destination, n int) {
	d.underway += n
	if d.slow {
		s.slow += n
	}
}

// judge says whether one is slow.
func (s *destinations) judge(d *destination, slow bool) {
	if d.slow == slow {
		return
	}
	if d.slow = slow; slow {
		s.slow += d.underway
		s.slowOnes++
	} else {
		s.slow -= d.underway
		s.slowOnes--
	}
	s.note(d)
}
