package registry

import (
	"time"

	"fanfare.dev/fanfare"
)

// A Principal is who a key speaks for.
type Principal struct {
	KeyID   string // key-1, ...; may be logged
	Name    string // what the key was made for
	Service string // the one service that it may touch; "" is all of them
	Scopes  Scopes // what it may do there
}

// Operator reports whether the key may do everything.
func (p Principal) Operator() bool { return p.Service == "" && p.Scopes.Has(ScopeAdmin) }

// May reports whether the key may touch the service.
func (p Principal) May(service string) bool { return p.Service == "" || p.Service == service }

// A PausedScope is something that an operator has paused.
type PausedScope struct {
	Scope  fanfare.Scope `json:"scope"`
	Reason string        `json:"reason,omitempty"`
	Since  time.Time     `json:"since"`
}
