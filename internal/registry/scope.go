package registry

import (
	"encoding/json"
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// Scopes say what a key may do in the services that it may touch. The bits are
// not stored, the names are.
type Scopes uint8

// The scopes of keys.
const (
	ScopeAdmin     Scopes = 1 << iota // configure, and everything that the others may
	ScopePublish                      // send events and messages
	ScopeSubscribe                    // put, end and look up subscribers and subscriptions
	ScopeRead                         // see configuration, traces and status
	ScopeSecrets                      // see what receivers of webhooks verify them with
	ScopeApprove                      // let a broadcast leave that waits for approval
)

// scopeNames lists the names in the order of the bits.
var scopeNames = [...]string{"admin", "publish", "subscribe", "read", "secrets", "approve"}

// Has reports whether one of the asked scopes is there, or implied by admin.
func (s Scopes) Has(asked Scopes) bool { return s&(asked|ScopeAdmin) != 0 }

// Names lists the scopes, admin first.
func (s Scopes) Names() []string {
	names := []string{}
	for i, name := range scopeNames {
		if s>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String joins the names.
func (s Scopes) String() string { return strings.Join(s.Names(), ", ") }

// ParseScopes reads names; the pointers of its errors are those of a list. No
// names are no scopes.
func ParseScopes(names []string) (Scopes, error) {
	var s Scopes
next:
	for i, name := range names {
		for bit, known := range scopeNames {
			if name == known {
				s |= 1 << bit
				continue next
			}
		}
		return 0, inputerror.Invalid(inputerror.Pointer("scopes", strconv.Itoa(i)), "use "+strings.Join(scopeNames[:], ", "), "unknown scope %s", inputerror.Quote(name))
	}
	return s, nil
}

// MarshalJSON writes a list of names.
func (s Scopes) MarshalJSON() ([]byte, error) { return json.Marshal(s.Names()) }

// UnmarshalJSON reads a list of names.
func (s *Scopes) UnmarshalJSON(b []byte) error {
	var names []string
	if err := json.Unmarshal(b, &names); err != nil {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/scopes", Message: "must be a list of names", Hint: "such as [\"publish\", \"read\"]"}
	}
	parsed, err := ParseScopes(names)
	if err == nil {
		*s = parsed
	}
	return err
}
