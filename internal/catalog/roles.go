package catalog

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Roles are the roles of a person in a service. A role is a named set of scopes; several roles together have all their scopes.
type Roles uint8

// The roles, in the order of the bits of Roles.
const (
	RoleViewer Roles = 1 << iota
	RoleSender
	RoleApprover
	RoleAdmin
)

// RoleNames lists the names of the roles in the order of the bits.
var RoleNames = [...]string{"viewer", "sender", "approver", "admin"}

// roleScopes are the scopes of the roles in the order of the bits.
var roleScopes = [...]Scopes{ScopeRead, ScopeRead | ScopePublish | ScopeSubscribe, ScopeRead | ScopeApprove, ScopeAdmin}

// ParseRole returns the role with a name.
func ParseRole(name string) (Roles, bool) {
	for bit, known := range RoleNames {
		if name == known {
			return 1 << bit, true
		}
	}
	return 0, false
}

// Scopes returns the scopes of all the roles.
func (r Roles) Scopes() (s Scopes) {
	for bit, scopes := range roleScopes {
		if r>>bit&1 != 0 {
			s |= scopes
		}
	}
	return s
}

// Names lists the roles.
func (r Roles) Names() []string {
	names := []string{}
	for bit, name := range RoleNames {
		if r>>bit&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Rights are the roles of a person.
type Rights struct {
	All      Roles            // in all services
	Services map[string]Roles // in single services, in addition
}

// IsEmpty reports whether the person has no role anywhere.
func (r Rights) IsEmpty() bool { return r.All == 0 && len(r.Services) == 0 }

// A Claim is a value that an issuer of OpenID Connect states about a person.
type Claim struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A RoleGrant gives a role to all people for whom an issuer of OpenID Connect states a claim.
type RoleGrant struct {
	Issuer string `json:"issuer"` // URL
	Claim  string `json:"claim"`  // name
	Value  string `json:"value"`  // the claim, or an element of its list
	Role   string `json:"role"`
}

// Limits of role grants.
const (
	MaxRoleGrants    = 1000 // of a service, and of a server
	maxIssuerBytes   = 500
	maxClaimBytes    = 200
	MaxClaimedBytes  = 500 // of the value of a claim
	roleGrantExample = "such as {issuer: https://login.example.org, claim: groups, value: news-editors, role: sender}"
)

// Check says what is wrong with a grant: the field, or "" for the whole grant, the problem, or "" if nothing is wrong, and a hint.
func (g *RoleGrant) Check() (field, problem, hint string) {
	for _, of := range []struct {
		field, value string
		limit        int
	}{{"issuer", g.Issuer, maxIssuerBytes}, {"claim", g.Claim, maxClaimBytes}, {"value", g.Value, MaxClaimedBytes}, {"role", g.Role, maxClaimBytes}} {
		switch {
		case of.value == "":
			return "", of.field + " is missing", roleGrantExample
		case len(of.value) > of.limit:
			return of.field, fmt.Sprintf("the text has %d bytes; at most %d are allowed", len(of.value), of.limit), ""
		case !utf8.ValidString(of.value) || strings.ContainsFunc(of.value, unprintable):
			return of.field, "the text contains a line break or another control character", ""
		}
	}
	if problem, hint := CheckIssuerURL(g.Issuer); problem != "" {
		return "issuer", problem, hint
	}
	if _, ok := ParseRole(g.Role); !ok {
		return "role", "unknown role", "use " + strings.Join(RoleNames[:], ", ")
	}
	return "", "", ""
}

// CheckIssuerURL says what is wrong with the URL of an issuer, "" if nothing is. Only an issuer on the same machine may do without TLS.
func CheckIssuerURL(text string) (problem, hint string) {
	const example = "use the issuer of its discovery document, such as https://login.example.org"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "is not the URL of an issuer", example
	case u.Scheme == "https" || u.Scheme == "http" && IsLoopbackHost(u.Hostname()):
		return "", ""
	}
	return "the URL of an issuer must begin with https://, except on the same machine", example
}

// IsLoopbackHost reports whether a host is a name or an address of the same machine.
func IsLoopbackHost(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}
