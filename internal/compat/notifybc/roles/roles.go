// Package roles decides who makes a request of the NotifyBC API.
//
// State. The addresses of administrators never change after the start. Failure: a request that proves nothing is anonymous.
package roles

import (
	"net/http"
	"net/netip"
	"slices"

	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
)

// A Role limits the requests of a caller.
type Role string

// The roles, the widest first.
const (
	SuperAdmin Role = "SuperAdmin"
	Admin      Role = "Admin"
	User       Role = "AuthenticatedUser"
	Anonymous  Role = "Anonymous"
)

// A Caller makes a request. Its JSON is that of createdBy and whoami.
type Caller struct {
	SecurityID string `json:"securityId,omitempty"`
	Strategy   string `json:"authnStrategy,omitempty"`
	Role       Role   `json:"role,omitempty"`
}

// IsAdmin reports whether the caller is an administrator of either kind.
func (c *Caller) IsAdmin() bool { return c.Role == SuperAdmin || c.Role == Admin }

// Addresses know the administrators by the addresses of their machines.
type Addresses struct{ admins []netip.Prefix }

// NewAddresses returns the addresses in the settings.
func NewAddresses(s *settings.Settings) (*Addresses, error) {
	admins, err := settings.Networks(s.AdminIPs)
	return &Addresses{admins}, err
}

// Caller returns the caller of a request.
func (a *Addresses) Caller(r *http.Request) Caller {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || len(r.Header.Values("is_anonymous")) > 0 {
		return Caller{Role: Anonymous}
	}
	address := from.Addr().Unmap()
	if slices.ContainsFunc(a.admins, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return Caller{SecurityID: address.String(), Strategy: "ip", Role: SuperAdmin}
	}
	return Caller{Role: Anonymous}
}
