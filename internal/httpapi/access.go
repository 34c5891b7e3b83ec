package httpapi

import (
	"net/http"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
)

// access says which key an endpoint asks for. A key with the scope admin passes
// wherever its service is meant; another service's things do not exist for it.
type access int

const (
	anybody       access = iota // no key at all
	mayRead                     // configuration, traces, status
	mayLookUp                   // people and their subscriptions: scope subscribe or read
	maySubscribe                // change people and their subscriptions
	mayPublish                  // send events and messages
	mayTry                      // for whom an event would be: scope publish, subscribe or read
	mayFollow                   // what became of a message: scope publish or read
	maySeeSecrets               // what receivers of webhooks verify them with
	mayApprove                  // let a broadcast leave that waits for approval
	mayConfigure                // scope admin: of the key's service, or of all
	operator                    // scope admin of a key without a service
)

// scopesOf says which scopes suffice for each access.
var scopesOf = [...]catalog.Scopes{
	mayRead:       catalog.ScopeRead,
	mayLookUp:     catalog.ScopeRead | catalog.ScopeSubscribe,
	maySubscribe:  catalog.ScopeSubscribe,
	mayPublish:    catalog.ScopePublish,
	mayTry:        catalog.ScopePublish | catalog.ScopeSubscribe | catalog.ScopeRead,
	mayFollow:     catalog.ScopePublish | catalog.ScopeRead,
	maySeeSecrets: catalog.ScopeSecrets,
	mayApprove:    catalog.ScopeApprove,
	mayConfigure:  catalog.ScopeAdmin,
	operator:      catalog.ScopeAdmin,
}

// allowed finds out who sent r, and whether they may use the endpoint.
func (a *API) allowed(r *http.Request, who access) (caller, error) {
	if who == anybody {
		return caller{}, nil
	}
	c, err := a.caller(r)
	if err == nil {
		err = c.must(who)
	}
	return c, err
}

// must refuses a key that may not do this, and says what it lacks.
func (c caller) must(who access) error {
	p := c.principal
	switch {
	case !p.Scopes.Has(scopesOf[who]):
		lacks := strings.ReplaceAll((scopesOf[who] &^ catalog.ScopeAdmin).String(), ", ", " or ")
		if lacks == "" {
			lacks = "admin"
		}
		return &fanfare.Error{Code: fanfare.Forbidden, Message: "this request needs a key with the scope " + lacks,
			Hint: p.KeyID + " has " + p.Scopes.String() + "; set scopes with fanfare key create --scope, or change them with PATCH /v1/keys/" + p.KeyID}
	case who == operator && p.Service != "":
		return &fanfare.Error{Code: fanfare.Forbidden, Message: "this request needs a key of all services with the scope admin",
			Hint: p.KeyID + " is for service " + p.Service + " only; the operator's key is in admin.key of the data directory"}
	}
	return nil
}

// scopeNames lists for the document the scopes of which one suffices.
func scopeNames(who access) []string { return scopesOf[who].Names() }
