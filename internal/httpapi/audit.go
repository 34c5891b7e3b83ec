package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// auditOf selects entries of the audit log.
type auditOf struct {
	Page
	Key    string    `query:"key" doc:"only changes made with this key, such as key-1"`
	Person string    `query:"person" doc:"only changes by this person of OpenID Connect: the key_name of an entry without a key"`
	Action string    `query:"action" doc:"only this action, such as delete"`
	Kind   string    `query:"kind" doc:"only changes to this kind of object, such as topic"`
	Name   string    `query:"name" doc:"only changes to objects with this name or id"`
	Since  time.Time `query:"since" doc:"only entries from this time on (RFC 3339)"`
	Until  time.Time `query:"until" doc:"only entries before this time (RFC 3339)"`
}

func (a *API) auditRoutes() {
	read(a, huma.Operation{OperationID: "list-audit", Method: http.MethodGet, Path: "/v1/audit", Tags: []string{"operations"},
		Summary:     "List the entries of the audit log, the latest first",
		Description: "Every change through the API is one entry; a bulk import is also one entry. Entries contain ids and names, but no addresses or secrets."}, mayConfigure, a.listAudit)
}

func (a *API) listAudit(ctx context.Context, c caller, in *auditOf) (wire.AuditPage, error) {
	list := listingOf("audit", c.service, in.Key, in.Person, in.Action, in.Kind, in.Name, in.Since.String(), in.Until.String())
	after, err := list.key(in.Cursor)
	if err != nil {
		return wire.AuditPage{}, err
	}
	before, _ := strconv.ParseInt(after, 10, 64) // 0 without a cursor: from the latest entry
	lines, next, err := a.deps.Audit.Audit(ctx, audit.Query{Service: c.service, KeyID: in.Key, Person: in.Person, Action: in.Action, Kind: in.Kind,
		Name: in.Name, Since: in.Since, Until: in.Until, Before: before, Limit: in.Limit})
	page := wire.AuditPage{Audit: make([]wire.AuditEntry, len(lines))}
	for i := range lines {
		page.Audit[i] = auditEntry(&lines[i])
	}
	if next != 0 {
		page.Next = list.cursor(strconv.FormatInt(next, 10))
	}
	return page, err
}

func auditEntry(l *audit.Entry) wire.AuditEntry {
	e := wire.AuditEntry{At: l.Time(), Key: l.KeyID, KeyName: l.KeyName, RequestID: l.Request, Service: l.Service,
		Action: l.Action, Kind: l.Kind, Name: l.Name}
	var detail audit.Detail
	if len(l.Detail) > 0 && json.Unmarshal(l.Detail, &detail) == nil {
		e.Changed, e.Counts = detail.Changed, detail.Counts
		for _, f := range detail.Fields {
			e.Fields = append(e.Fields, wire.FieldChange(f))
		}
	}
	return e
}

// acting returns a context that attributes changes to the caller. Endpoints that change
// nothing the audit log covers do not need it.
func (c caller) acting(ctx context.Context, x *responseWriter, who access) context.Context {
	switch who {
	case anybody, mayRead, mayListServices, mayLookUp, mayPublish, mayTry, maySeeSends, mayFollowSessions, mayFollowTasks, mayWork:
		return ctx
	}
	actor := audit.Actor{KeyID: c.principal.KeyID, KeyName: c.principal.Name, Request: x.id, Tenant: c.principal.Service}
	if c.principal.Issuer != "" {
		actor.KeyName = c.principal.Title()
	}
	return audit.WithActor(ctx, actor)
}

// note adds an entry to the audit log for a change made outside the registry. The change
// is already made, so a failure here is logged and does not fail the request.
func (a *API) note(ctx context.Context, d audit.Operation, detail *audit.Detail) {
	if err := a.deps.Audit.Record(ctx, d, detail); err != nil {
		a.log.Error("a change could not be recorded in the audit log", "service", d.Service, "action", d.Action, "kind", d.Kind, "name", d.Name, "err", err)
	}
}
