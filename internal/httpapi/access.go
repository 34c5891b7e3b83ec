package httpapi

import (
	"net/http"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
)

// access defines which keys and people an endpoint accepts. A key with the scope admin can do
// everything in its service; for it, objects of other services do not exist.
type access int

const (
	anybody           access = iota // no key at all
	mayRead                         // configuration, traces, status
	mayListServices                 // as mayRead, also without specifying one of several services
	mayLookUp                       // people and their subscriptions: scope subscribe or read
	maySubscribe                    // change people and their subscriptions
	mayPublish                      // send events and messages
	mayTry                          // dry run of an event: scope publish, subscribe or read
	mayFollow                       // read the state of a message: scope publish or read
	maySeeSecrets                   // read the secrets with which receivers verify webhooks
	mayApprove                      // approve a broadcast that waits for approval
	mayStartTasks                   // start and cancel tasks, each of which has its own scope
	mayFollowTasks                  // see tasks: read, or one of their scopes
	mayEditSends                    // create, change and submit sends: scope publish
	maySeeSends                     // see sends and their lists: scope publish, read or approve
	mayStopSends                    // pause, resume and cancel sends: scope publish or approve
	mayUseSessions                  // open and use sessions
	mayFollowSessions               // see sessions and responses: scope sessions or read
	mayWork                         // connect instances of workers, and agents
	mayConfigure                    // scope admin: of the key's service, or of all
	operator                        // scope admin of a key without a service
)

// scopesOf lists the scopes for each access, any of which is sufficient.
var scopesOf = [...]catalog.Scopes{
	mayRead:           catalog.ScopeRead,
	mayListServices:   catalog.ScopeRead,
	mayLookUp:         catalog.ScopeRead | catalog.ScopeSubscribe,
	maySubscribe:      catalog.ScopeSubscribe,
	mayPublish:        catalog.ScopePublish,
	mayTry:            catalog.ScopePublish | catalog.ScopeSubscribe | catalog.ScopeRead,
	mayFollow:         catalog.ScopePublish | catalog.ScopeRead,
	maySeeSecrets:     catalog.ScopeSecrets,
	mayApprove:        catalog.ScopeApprove,
	mayStartTasks:     catalog.ScopeSubscribe | catalog.ScopeApprove,
	mayFollowTasks:    catalog.ScopeRead | catalog.ScopeSubscribe | catalog.ScopeApprove,
	mayEditSends:      catalog.ScopePublish,
	maySeeSends:       catalog.ScopePublish | catalog.ScopeRead | catalog.ScopeApprove,
	mayStopSends:      catalog.ScopePublish | catalog.ScopeApprove,
	mayUseSessions:    catalog.ScopeSessions,
	mayFollowSessions: catalog.ScopeSessions | catalog.ScopeRead,
	mayWork:           catalog.ScopeWork,
	mayConfigure:      catalog.ScopeAdmin,
	operator:          catalog.ScopeAdmin,
}

// allowed authenticates the sender of r and checks that its key may use the endpoint.
func (a *API) allowed(r *http.Request, who access) (caller, error) {
	if who == anybody {
		return caller{}, nil
	}
	c, err := a.caller(r, who)
	if err == nil {
		err = c.must(who)
	}
	return c, err
}

// must returns an error that states the missing scope if the caller lacks the access.
func (c caller) must(who access) error {
	p := c.principal
	switch {
	case !p.Scopes.Has(scopesOf[who]):
		lacks := strings.ReplaceAll((scopesOf[who] &^ catalog.ScopeAdmin).String(), ", ", " or ")
		if lacks == "" {
			lacks = "admin"
		}
		if p.Issuer != "" {
			return &fanfare.Error{Code: fanfare.Forbidden, Message: "this request needs a role with the scope " + lacks, Hint: "your roles have the scopes " + p.Scopes.String() + "; ask an administrator for another role"}
		}
		return &fanfare.Error{Code: fanfare.Forbidden, Message: "this request needs a key with the scope " + lacks,
			Hint: p.KeyID + " has " + p.Scopes.String() + "; set scopes with fanfare key create --scope, or change them with PATCH /v1/keys/" + p.KeyID}
	case who == operator && p.Service != "" && p.Issuer != "":
		return &fanfare.Error{Code: fanfare.Forbidden, Message: "this request needs the role admin in all services", Hint: "sign in with an operator key, such as the one in admin.key of the data directory, or ask an administrator for the role"}
	case who == operator && p.Service != "":
		return &fanfare.Error{Code: fanfare.Forbidden, Message: "this request needs a key for all services with the scope admin",
			Hint: p.KeyID + " is for service " + p.Service + " only; use an operator key, such as the one in admin.key of the data directory"}
	case c.services != nil && who != mayListServices:
		return &fanfare.Error{Code: fanfare.Invalid, Message: "you have roles in several services, but the request does not specify one of them", Hint: nameService + " (" + strings.Join(c.services[:min(len(c.services), 10)], ", ") + ")"}
	}
	return nil
}

// scopeNames lists the scopes for the OpenAPI document; any one of them is sufficient.
func scopeNames(who access) []string { return scopesOf[who].Names() }
