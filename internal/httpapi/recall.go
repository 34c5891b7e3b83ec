package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Recalls remove the messages of broadcasts from mailboxes. Changes are durable on return.
type Recalls interface {
	Recall(ctx context.Context, event fanfare.EventRef) error
	// Expire sets the time at which the messages are removed; the zero time is never.
	Expire(ctx context.Context, event fanfare.EventRef, at time.Time) error
}

func (a *API) recallRoutes() {
	tags := []string{"operations"}
	act(a, huma.Operation{OperationID: "recall-broadcast", Method: http.MethodPost, Path: "/v1/broadcasts/{id}/recall", Tags: tags,
		Summary: "Recall a broadcast from the mailboxes of its recipients",
		Description: "Messages that their recipients have not opened are removed from the mailboxes within seconds, and their deliveries get recalled_at. Messages for mailboxes that have not been stored yet are cancelled. " +
			"Messages that were opened stay, and so do messages in channels with another driver than inbox. The response is 409 if the broadcast has no messages for mailboxes. A recall cannot be undone."}, mayConfigure,
		func(ctx context.Context, c caller, in *OneEvent) error {
			ref, b, err := a.event(ctx, c, in.ID)
			if err != nil {
				return err
			}
			httpio.AllowLongResponse(ctx.Value(exchangeKey{}).(*responseWriter))
			if err := a.deps.Recalls.Recall(ctx, ref); err != nil {
				return err
			}
			a.note(ctx, audit.Operation{Service: b.Service, Action: "recall", Kind: string(fanfare.ScopeBroadcast), Name: b.Event}, nil)
			return nil
		})

	expire := huma.Operation{OperationID: "put-expiry", Method: http.MethodPut, Path: "/v1/broadcasts/{id}/expiry", Tags: tags,
		Summary: "Set the time at which a broadcast is removed from mailboxes",
		Description: "At that time all messages of the broadcast are removed from the mailboxes, whether they were opened or not, and their deliveries get expired_at. A message that would be stored later fails. " +
			"A time in the past removes the messages within seconds. The setting keep of the channel is the default. The response is 409 if the broadcast has no messages for mailboxes.",
		Parameters: []*huma.Param{param("id", "public id of the event, evt-..., or the id that the sender assigned"), service()}, RequestBody: body[wire.Expiry](a, "The time", "application/json")}
	replies[any](a, &expire, http.StatusNoContent, "Set and durable")
	a.handle(expire, mayConfigure, a.putExpiry)
}

func (a *API) putExpiry(x *responseWriter, r *http.Request, c caller) error {
	p, err := readPatch[wire.Expiry](x, r)
	if err != nil {
		return err
	}
	if _, ok := p["at"]; !ok {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/at", Message: "is missing", Hint: "set it to a time such as 2026-12-24T18:00:00Z, or to null so that the messages do not expire"}
	}
	var at time.Time
	if err := p.into("at", &at); err != nil {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/at", Message: "is not a time", Hint: "write it as 2026-12-24T18:00:00Z (RFC 3339), or null"}
	}
	ref, b, err := a.event(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := a.deps.Recalls.Expire(r.Context(), ref, at); err != nil {
		return err
	}
	change := audit.FieldChange{Field: "at", New: timeText(at)}
	if b.Inbox != nil {
		change.Old = timeText(b.Inbox.ExpiresAt)
	}
	a.note(r.Context(), audit.Operation{Service: b.Service, Action: "expire", Kind: string(fanfare.ScopeBroadcast), Name: b.Event}, &audit.Detail{Fields: []audit.FieldChange{change}})
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// timeText returns a time for the audit log, or "" for the zero time.
func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
