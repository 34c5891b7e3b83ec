package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// An AuditQuery selects entries of the audit log. All fields may be zero.
type AuditQuery struct {
	Key, Action, Kind, Name string
	Person                  string // of OpenID Connect: KeyName of an entry without a key
	Since, Until            time.Time
	Cursor                  string // Next of the previous page
	Limit                   int    // 1 to 1000; 0 is 100
}

// Audit returns changes, the latest first: those in the service of the client, or in all services
// if the client has none. A page may have fewer than Limit entries although more pages follow.
func (c *Client) Audit(ctx context.Context, q AuditQuery) (AuditPage, error) {
	values := url.Values{}
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	set("key", q.Key)
	set("person", q.Person)
	set("action", q.Action)
	set("kind", q.Kind)
	set("name", q.Name)
	set("cursor", q.Cursor)
	if !q.Since.IsZero() {
		set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if !q.Until.IsZero() {
		set("until", q.Until.UTC().Format(time.RFC3339Nano))
	}
	if q.Limit != 0 {
		set("limit", strconv.Itoa(q.Limit))
	}
	var page AuditPage
	err := c.call(ctx, get("/v1/audit", values), nil, &page)
	return page, err
}

// AuditPage is one page of the audit log.
type AuditPage = wire.AuditPage

// An AuditEntry is one change.
type AuditEntry = wire.AuditEntry
