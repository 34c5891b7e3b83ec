package registry

import (
	"slices"
	"time"
)

// BounceSettings say after which bounces a service gives an address up. A rule that
// is the zero one is the default of its kind.
type BounceSettings struct {
	Unknown   BounceRule `json:"unknown,omitzero"`   // status and words both say that there is no such mailbox
	Hard      BounceRule `json:"hard,omitzero"`      // one of the two says so, or the domain is none
	Soft      BounceRule `json:"soft,omitzero"`      // it came to nothing for another reason, none of which is the sender
	Full      BounceRule `json:"full,omitzero"`      // the mailbox has no room
	Complaint BounceRule `json:"complaint,omitzero"` // a reader called it junk
}

// A BounceRule gives an address up after so many messages that came back within
// some days, the last of them so many days behind the first.
type BounceRule struct {
	After      int  `json:"after,omitempty"`
	WithinDays int  `json:"within_days,omitempty"` // 30
	OverDays   int  `json:"over_days,omitempty"`   // 0: they may come at once
	ForDays    int  `json:"for_days,omitempty"`    // 0: for good
	Never      bool `json:"never,omitempty"`       // instead of all that: nobody is given up
}

// What the rules of bounces may say. MaxBounceDays is how long a bounce is of any
// use.
const (
	MaxBounceDays  = 180
	maxBounces     = 100
	maxGivenUpDays = 3650
	bounceWithin   = 30
)

// defaultBounces are in force where a service says nothing else. They are those of
// large senders: an address that nobody has is not tried again, and a mailbox that
// is full, or a server that is down, has weeks.
var defaultBounces = BounceSettings{
	Unknown:   BounceRule{After: 1, WithinDays: bounceWithin},
	Hard:      BounceRule{After: 3, WithinDays: bounceWithin},
	Soft:      BounceRule{After: 7, WithinDays: 14, OverDays: 4, ForDays: 90},
	Full:      BounceRule{After: 7, WithinDays: 60, OverDays: 30, ForDays: 90},
	Complaint: BounceRule{After: 1, WithinDays: bounceWithin},
}

// Bounces returns the rules of a service, complete; the defaults where there is no
// such service.
func (r *Registry) Bounces(service string) BounceSettings {
	set := r.ServiceLimits(service).Bounces
	for i, rule := range set.rules() {
		if *rule == (BounceRule{}) {
			*rule = *defaultBounces.rules()[i]
		}
	}
	return set
}

func (s *BounceSettings) rules() [5]*BounceRule {
	return [...]*BounceRule{&s.Unknown, &s.Hard, &s.Soft, &s.Full, &s.Complaint}
}

// Reached reports whether what came back, at some times, is enough.
func (b *BounceRule) Reached(at []time.Time, now time.Time) bool {
	if b.Never {
		return false
	}
	const day = 24 * time.Hour
	begin := now.Add(-time.Duration(b.WithinDays) * day)
	at = slices.DeleteFunc(slices.Clone(at), func(t time.Time) bool { return t.Before(begin) })
	if len(at) == 0 || len(at) < b.After {
		return false
	}
	first, last := slices.MinFunc(at, time.Time.Compare), slices.MaxFunc(at, time.Time.Compare)
	return last.Sub(first) >= time.Duration(b.OverDays)*day
}

// Until is until when an address that is given up now stays so; zero for good.
func (b *BounceRule) Until(now time.Time) time.Time {
	if b.ForDays == 0 {
		return time.Time{}
	}
	return now.AddDate(0, 0, b.ForDays)
}

// bounces reads the rules of a service.
func (n node) bounces() (s BounceSettings) {
	n.fields(fields{
		"unknown":   func(v node) { s.Unknown = v.bounceRule() },
		"hard":      func(v node) { s.Hard = v.bounceRule() },
		"soft":      func(v node) { s.Soft = v.bounceRule() },
		"full":      func(v node) { s.Full = v.bounceRule() },
		"complaint": func(v node) { s.Complaint = v.bounceRule() },
	})
	return s
}

// bounceRule reads one rule.
func (n node) bounceRule() (rule BounceRule) {
	n.fields(fields{
		"after":       func(v node) { rule.After = v.number(1, maxBounces) },
		"within_days": func(v node) { rule.WithinDays = v.number(1, MaxBounceDays) },
		"over_days":   func(v node) { rule.OverDays = v.number(0, MaxBounceDays) },
		"for_days":    func(v node) { rule.ForDays = v.number(1, maxGivenUpDays) },
		"never":       func(v node) { rule.Never = v.yes() },
	})
	if rule.Never {
		n.alone("never", true)
		return rule
	}
	n.needs("after", "such as 3, or say never: true")
	if rule.WithinDays == 0 {
		rule.WithinDays = bounceWithin
	}
	if rule.OverDays > rule.WithinDays {
		n.fault("take a longer within_days", "over_days is longer than within_days: that can never be")
	}
	return rule
}
