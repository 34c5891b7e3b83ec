package query

import (
	"slices"
	"time"
)

// Paths is the part of a where by which a store can look up candidates; Match decides among them. A nil
// list excludes nothing, an empty one excludes every record.
type Paths struct {
	IDs, ServiceNames, Channels, UserChannelIDs, UserIDs, States []string

	CreatedFrom, CreatedTo time.Time // inclusive; zero: no bound
}

// Paths returns the part of the where that a store can look up.
func (q *Query) Paths() Paths { return q.paths }

func pathsOf(c condition) (p Paths) {
	p.restrict(c)
	return p
}

// restrict adds the restrictions that hold for every record that c matches.
func (p *Paths) restrict(c condition) {
	switch c := c.(type) {
	case allOf:
		for _, one := range c {
			p.restrict(one)
		}
	case anyOf:
		if len(c) == 1 {
			p.restrict(c[0])
		}
	case *fieldTest:
		if len(c.path) == 1 {
			p.restrictField(c.path[0], c.test)
		}
	}
}

func (p *Paths) restrictField(name string, t test) {
	switch t := t.(type) {
	case everyTest:
		for _, one := range t {
			p.restrictField(name, one)
		}
	case equalTest:
		p.restrictField(name, inTest{[]any{t.value}})
	case inTest:
		texts := make([]string, 0, len(t.values))
		for _, v := range t.values {
			text, ok := v.(string)
			if !ok { // null, or a date
				return
			}
			texts = append(texts, text)
		}
		if list := p.list(name); list != nil {
			if *list == nil {
				*list = texts
			} else {
				*list = slices.DeleteFunc(*list, func(one string) bool { return !slices.Contains(texts, one) })
			}
		}
	case orderTest:
		at, isDate := t.value.(time.Time)
		if !isDate || name != "created" {
			return
		}
		switch t.operator {
		case "$gt", "$gte":
			if at.After(p.CreatedFrom) {
				p.CreatedFrom = at
			}
		default:
			if p.CreatedTo.IsZero() || at.Before(p.CreatedTo) {
				p.CreatedTo = at
			}
		}
	}
}

// list returns the list of a field, or nil.
func (p *Paths) list(name string) *[]string {
	switch name {
	case "id":
		return &p.IDs
	case "serviceName":
		return &p.ServiceNames
	case "channel":
		return &p.Channels
	case "userChannelId":
		return &p.UserChannelIDs
	case "userId":
		return &p.UserIDs
	case "state":
		return &p.States
	}
	return nil
}
