package registry

import (
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/inputerror"

	"github.com/goccy/go-yaml/ast"
)

// DestinationSettings bound what goes to each of whom a channel sends to: the
// domain of an address, or the host and port of a URL.
type DestinationSettings struct {
	Rate        Rate                           `json:"rate,omitzero"`         // messages to one; unlimited
	Connections int                            `json:"connections,omitempty"` // messages under way to one; 0: as many as it takes
	By          string                         `json:"by,omitempty"`          // ByMX: domains whose mail goes to one organisation are one; "": each is its own
	Only        map[string]DestinationSettings `json:"only,omitempty"`        // by name, what is other than for each
}

// ByMX makes destinations of those who run the mail exchangers of domains.
const ByMX = "mx"

// A DailyQuota is how many messages may leave on one day; the zero one is without
// bound.
type DailyQuota struct {
	Messages int64  `json:"messages"`
	Zone     string `json:"zone,omitempty"` // in which days begin; "" is UTC
}

// maxQuota is the highest quota that can be told from none.
const maxQuota = 1_000_000_000

// maxOnly is how many destinations may have limits of their own.
const maxOnly = 1000

// limitFields adds what a channel can say of how much it sends at a time.
func limitFields(c *ChannelSpec, driver string, all fields) {
	all["adapt"] = func(v node) { c.Adapt = v.yes() }
	all["daily_quota"] = func(v node) { c.DailyQuota = v.dailyQuota() }
	all["destinations"] = func(v node) {
		known := oneDestination(&c.Destinations)
		if driver == "smtp" {
			known["by"] = func(v node) {
				if by := v.choice("domain", ByMX); by == ByMX {
					c.Destinations.By = by
				}
			}
		}
		known["only"] = func(v node) {
			c.Destinations.Only = map[string]DestinationSettings{}
			v.entries(func(name string, v node) {
				if name == "" || name != strings.ToLower(name) || strings.ContainsAny(name, " \t/@") {
					v.fault("write it as gmail.com or hooks.example.org:443", "%s is not a domain, or a host and port", inputerror.Quote(name))
				}
				var own DestinationSettings
				v.fields(oneDestination(&own))
				c.Destinations.Only[name] = own
			})
			if n := len(c.Destinations.Only); n > maxOnly {
				v.fault("", "%d destinations have limits of their own, at most %d may", n, maxOnly)
			}
		}
		v.fields(known)
	}
}

func oneDestination(d *DestinationSettings) fields {
	return fields{
		"rate":        func(v node) { d.Rate = v.rate() },
		"connections": func(v node) { d.Connections = v.number(1, maxConnections) },
	}
}

// dailyQuota reads a number of messages, an object with the zone beside it, or that
// there is no bound.
func (n node) dailyQuota() (q DailyQuota) {
	messages := func(v node) { q.Messages = int64(v.number(1, maxQuota)) }
	switch value := n.resolved().(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	case *ast.StringNode:
		if value.Value != unlimited {
			messages(n)
		}
		return q
	default:
		messages(n)
		return q
	}
	n.fields(fields{
		"messages": messages,
		"zone": func(v node) {
			q.Zone = v.line()
			if _, err := time.LoadLocation(q.Zone); err != nil || q.Zone == "Local" {
				v.fault("write it as Europe/London", "%s is not a time zone", inputerror.Quote(q.Zone))
			}
		},
	})
	n.needs("messages", "such as 100000")
	return q
}
