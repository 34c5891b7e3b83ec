package registry

import (
	"time"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare/internal/schedule/quiethours"
)

// QuietHours is when nothing is sent to people, on the clock of where they live.
type QuietHours struct {
	From   string   `json:"from"`             // time of day, such as 21:00
	To     string   `json:"to"`               // such as 08:00, to 24:00; it may be the next day
	Days   []string `json:"days,omitempty"`   // on which they begin, such as fri; none: all
	Zone   string   `json:"zone,omitempty"`   // of whom none is known; "" is UTC
	Spread Duration `json:"spread,omitempty"` // over which what has waited is sent
	Urgent bool     `json:"urgent,omitempty"` // the urgent lane waits too
}

const (
	defaultSpread = Duration(5 * time.Minute)
	maxSpread     = Duration(6 * time.Hour)
)

func (n node) quietHours() (q QuietHours) {
	q.Spread = defaultSpread
	n.fields(fields{
		"from": func(v node) { q.From = v.timeOfDay() },
		"to":   func(v node) { q.To = v.timeOfDay() },
		"days": func(v node) {
			v.each(func(v node) {
				day := v.text()
				if _, err := quiethours.ParseDay(day); err != nil {
					v.fault("use mon, tue, wed, thu, fri, sat or sun", "%v", err)
				}
				q.Days = append(q.Days, day)
			})
		},
		"zone": func(v node) {
			q.Zone = v.line()
			if _, err := time.LoadLocation(q.Zone); err != nil || q.Zone == time.Local.String() {
				v.fault("use a name such as Europe/London", "unknown time zone %s", inputerror.Quote(q.Zone))
			}
		},
		"spread": func(v node) {
			if q.Spread = v.duration(); q.Spread > maxSpread {
				v.fault("", "more than %v", time.Duration(maxSpread))
			}
		},
		"urgent": func(v node) { q.Urgent = v.yes() },
	})
	n.needs("from", "such as \"21:00\"")
	n.needs("to", "such as \"08:00\"")
	if c, err := q.Compile(); err == nil && (c.From == c.To || c.To-c.From == 24*60 && len(q.Days) == 0) {
		n.fault("leave out the channel, or pause it", "it would always be quiet")
	}
	return q
}

func (n node) timeOfDay() string {
	s := n.text()
	if _, err := quiethours.ParseClock(s); err != nil {
		n.fault("write it in quotes as \"08:00\"", "%s is not a time of day", inputerror.Quote(s))
	}
	return s
}

// IsZero reports whether there are none.
func (q QuietHours) IsZero() bool { return q.From == "" }

// Compile returns the hours as they are looked up.
func (q QuietHours) Compile() (c quiethours.Quiet, err error) {
	if c.From, err = quiethours.ParseClock(q.From); err != nil {
		return c, err
	}
	if c.To, err = quiethours.ParseClock(q.To); err != nil {
		return c, err
	}
	for _, name := range q.Days {
		day, err := quiethours.ParseDay(name)
		if err != nil {
			return c, err
		}
		c.Days[day] = true
	}
	return c, nil
}
