package registry

import (
	"slices"

	"fanfare.dev/fanfare"
)

// A Relay is one of several next hops of a channel. What it leaves empty is the
// channel's, but for name and password.
type Relay struct {
	Name         string `json:"name,omitempty"` // unique within the channel; "" takes Relay
	Relay        string `json:"relay"`          // host:port
	Weight       int    `json:"weight"`         // its share, against the weights of the others; 0: nothing leaves by it
	TLS          string `json:"tls,omitempty"`
	Username     string `json:"username,omitempty"`
	PasswordEnv  string `json:"password_env,omitempty"`
	PasswordFile string `json:"password_file,omitempty"`
	Hello        string `json:"hello,omitempty"`
	Grouping     string `json:"grouping,omitempty"`
}

// name is what the relay is called.
func (r *Relay) name() string {
	if r.Name == "" {
		return r.Relay
	}
	return r.Name
}

// A Hop is a next hop of a channel: the channel as it would be with that relay
// alone.
type Hop struct {
	Name    string
	Weight  int
	Channel *Channel
}

// Hops lists the next hops of a channel, at least one.
func (c *Channel) Hops() []Hop {
	if len(c.Relays) == 0 {
		return []Hop{{c.Relay, 1, c}}
	}
	hops := make([]Hop, len(c.Relays))
	for i := range c.Relays {
		r := &c.Relays[i]
		one := *c
		one.Relays, one.Relay = nil, r.Relay
		one.Username, one.PasswordEnv, one.PasswordFile = r.Username, r.PasswordEnv, r.PasswordFile
		one.TLS = r.TLS
		if one.TLS == "" {
			one.TLS = c.TLS
		}
		if r.Hello != "" {
			one.Hello = r.Hello
		}
		if r.Grouping != "" {
			one.Grouping = r.Grouping
		}
		hops[i] = Hop{r.name(), r.Weight, &one}
	}
	return hops
}

// hop reports whether the channel has a next hop of that name.
func (c *Channel) hop(name string) bool {
	return slices.ContainsFunc(c.Hops(), func(h Hop) bool { return h.Name == name })
}

// RelayScope is the scope of one relay of a channel.
func RelayScope(c *Channel, relay string) fanfare.Scope {
	return fanfare.Scope{Kind: fanfare.ScopeRelay, Name: c.Service + "/" + c.Name + "/" + relay}
}

// Drained reports whether an operator lets nothing leave by a relay of a channel.
func (r *Registry) Drained(c *Channel, relay string) bool {
	is, _ := r.switches.get(RelayScope(c, relay))
	return is.Paused
}
