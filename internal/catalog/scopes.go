package catalog

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
)

// A Principal is who sent a request: a key, or a person who signed in with OpenID Connect.
type Principal struct {
	KeyID   string // key-1, ...; may be logged; "" for a person
	Name    string // purpose of the key, or name of the person
	Owner   string // person who owns the key, such as a mail address; for a person, the verified mail address; "" if unknown
	Issuer  string // of OpenID Connect; "" for a key
	Subject string // person, as the issuer knows them; "" for a key
	Service string // the only service that it may access; "" for all services
	Scopes  Scopes // what it may do there
}

// Identities returns the texts that identify a principal. Two principals with a common text are the same person.
func (p Principal) Identities() (all []string) {
	if p.KeyID != "" {
		all = append(all, "key "+p.KeyID)
	}
	if p.Issuer != "" {
		all = append(all, "person "+p.Issuer+" "+p.Subject)
	}
	if p.Owner != "" {
		all = append(all, "owner "+strings.ToLower(p.Owner))
	}
	return all
}

// ID returns a text that identifies the principal, for counting its requests; "" if nobody is known.
func (p Principal) ID() string {
	if all := p.Identities(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Title names the principal for operators: the id and the name of a key, or the name, the verified mail address and the issuer of a person. A person
// chooses their name, so it cannot imitate the other parts.
func (p Principal) Title() string {
	switch {
	case p.Issuer == "" && p.Name == "":
		return p.KeyID
	case p.Issuer == "":
		return p.KeyID + " (" + p.Name + ")"
	}
	var title strings.Builder
	title.WriteString(p.Name)
	if p.Owner != "" {
		title.WriteString(" <" + p.Owner + "> (" + p.Issuer + ")")
	} else {
		title.WriteString(" (" + p.Issuer + ", " + p.Subject + ")")
	}
	return strings.TrimSpace(title.String())
}

// PersonName returns a name that an issuer states, as one line without the characters that separate the parts of a title.
func PersonName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unprintable(r) || strings.ContainsRune("<>()", r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	name = strings.Join(strings.Fields(name), " ")
	if len(name) > maxPersonNameBytes {
		name = strings.TrimSpace(strings.ToValidUTF8(name[:maxPersonNameBytes], ""))
	}
	return name
}

const maxPersonNameBytes = 200

// Operator reports whether the key may do everything.
func (p Principal) Operator() bool { return p.Service == "" && p.Scopes.Has(ScopeAdmin) }

// May reports whether the key may access the service.
func (p Principal) May(service string) bool { return p.Service == "" || p.Service == service }

// A PausedScope is something that an operator has paused.
type PausedScope struct {
	Scope  fanfare.Scope `json:"scope"`
	Reason string        `json:"reason,omitempty"`
	Since  time.Time     `json:"since"`
	By     string        `json:"by,omitempty"` // who paused it; "" if unknown
}

// Scopes are the permissions of a key in the services that it may access. The names are stored, not
// the bits.
type Scopes uint8

// The scopes of keys.
const (
	ScopeAdmin     Scopes = 1 << iota // configure, and everything that the others may
	ScopePublish                      // send events and messages
	ScopeSubscribe                    // put, end and look up subscribers and subscriptions
	ScopeRead                         // see configuration, traces and status
	ScopeSecrets                      // see what receivers of webhooks verify them with
	ScopeApprove                      // approve held broadcasts
	ScopeSessions                     // open and use sessions
	ScopeWork                         // connect instances of workers, and agents
)

// ScopeNames lists the names in the order of the bits.
var ScopeNames = [...]string{"admin", "publish", "subscribe", "read", "secrets", "approve", "sessions", "work"}

// Has reports whether one of the asked scopes is there, or implied by admin.
func (s Scopes) Has(asked Scopes) bool { return s&(asked|ScopeAdmin) != 0 }

// Names lists the scopes, admin first.
func (s Scopes) Names() []string {
	names := []string{}
	for i, name := range ScopeNames {
		if s>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String joins the names.
func (s Scopes) String() string { return strings.Join(s.Names(), ", ") }

// ParseScopes parses a list of names. The pointers of its errors are indexes in the list. An empty
// list has no scopes.
func ParseScopes(names []string) (Scopes, error) {
	var s Scopes
next:
	for i, name := range names {
		for bit, known := range ScopeNames {
			if name == known {
				s |= 1 << bit
				continue next
			}
		}
		return 0, inputerror.Invalid(inputerror.Pointer("scopes", strconv.Itoa(i)), "use "+strings.Join(ScopeNames[:], ", "), "unknown scope %s", inputerror.Quote(name))
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
