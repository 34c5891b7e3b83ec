package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/people/suppression"
)

// Suppressions are the addresses that nobody may subscribe or write to. Without a
// service they are those of all services.
type Suppressions interface {
	Suppression(ctx context.Context, service, address string) (suppression.Suppression, error)
	// CheckSuppression reads an ask; SuppressRecords keeps some of them, and counts
	// those that say more than the list did.
	CheckSuppression(ask *suppression.Request) (suppression.Record, error)
	SuppressRecords(ctx context.Context, records []suppression.Record) (added []bool, err error)
	Unsuppress(ctx context.Context, service, address string) error
	// Suppressions returns a page, the latest first; EachSuppression visits all.
	Suppressions(ctx context.Context, f suppression.Filter, after *suppression.Cursor, limit int) (page []suppression.Suppression, next *suppression.Cursor, err error)
	EachSuppression(ctx context.Context, f suppression.Filter, visit func(*suppression.Suppression) error) error
}

// A SuppressionRequest asks that nobody writes to an address.
type SuppressionRequest struct {
	Address     string    `json:"address,omitempty" doc:"a mail address, or the URL of a receiver of webhooks"`
	Hash        string    `json:"hash,omitempty" doc:"instead: of an export of this server, where the address is not kept"`
	Reason      string    `json:"reason,omitempty" enum:"soft_bounces,imported,unsubscribed,hard_bounce,manual,complaint,erased" doc:"the stronger one stays, in this order; manual, or of a list imported, where it is left out"`
	Source      string    `json:"source,omitempty" maxLength:"200" doc:"origin of the entry"`
	Until       time.Time `json:"until,omitzero" doc:"end of the suppression; default, and after 2262: permanent"`
	At          time.Time `json:"at,omitzero" doc:"time of the entry, as in an export; ignored"`
	AllServices bool      `json:"all_services,omitempty" doc:"true: no service on this server sends to it; requires a key with the scope admin for all services"`
}

func (q *SuppressionRequest) ask(service, reason string) *suppression.Request {
	ask := &suppression.Request{Service: service, Address: q.Address, Hash: q.Hash, Reason: q.Reason, Source: q.Source, Until: q.Until}
	if ask.Reason == "" {
		ask.Reason = reason
	}
	return ask
}

// A SuppressionAdded is the answer to one line of a list.
type SuppressionAdded struct {
	Added bool `json:"added" doc:"false: the list said as much already"`
}

// SuppressionList is a page of suppressions.
type SuppressionList struct {
	Suppressions []suppression.Suppression `json:"suppressions" doc:"the latest first"`
	Next         string                    `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

type suppressedAddress struct {
	Named
	Address     string `query:"address" required:"true" doc:"the address"`
	AllServices bool   `query:"all_services" doc:"only entries that hold for all services; requires a key with the scope admin for all services"`
}

func (a *API) suppressionRoutes() {
	const one = "/v1/suppressions"
	tags := []string{"subscribers"}
	read(a, huma.Operation{OperationID: "get-suppression", Method: http.MethodGet, Path: one, Tags: tags,
		Summary: "Whether an address is suppressed, and why", Description: "The entry of the service, or else the entry for all services."}, mayLookUp,
		func(ctx context.Context, c caller, in *suppressedAddress) (suppression.Suppression, error) {
			s, err := a.suppressionScope(c, in.AllServices)
			if err != nil {
				return suppression.Suppression{}, err
			}
			return a.deps.Suppressions.Suppression(ctx, s, in.Address)
		})

	add := huma.Operation{OperationID: "suppress", Method: http.MethodPost, Path: one, Tags: tags,
		Summary: "Put an address on the suppression list",
		Description: "After the response no further message to the address is started: waiting messages are settled as suppressed, with the reason. " +
			"Of an address that is on the list the stronger reason and the later end stay.",
		Parameters: []*huma.Param{service()}, RequestBody: body[SuppressionRequest](a, "The address and the reason", "application/json")}
	replies[suppression.Suppression](a, &add, http.StatusOK, "The entry in the list", "application/json")
	a.handle(add, maySubscribe, a.suppress)

	act(a, huma.Operation{OperationID: "lift-suppression", Method: http.MethodDelete, Path: one, Tags: tags,
		Summary: "Take an address off the suppression list", Description: "Do this when the owner of the address asks for messages again, or the mailbox works again."}, maySubscribe,
		func(ctx context.Context, c caller, in *suppressedAddress) error {
			s, err := a.suppressionScope(c, in.AllServices)
			if err != nil {
				return err
			}
			return a.deps.Suppressions.Unsuppress(ctx, s, in.Address)
		})
	a.suppressionListRoutes()
}

// suppressionScope is the service that a caller asks about, "" for all of them,
// which an operator of the server alone may ask about.
func (a *API) suppressionScope(c caller, all bool) (string, error) {
	if all {
		return "", c.must(operator)
	}
	return a.oneService(c)
}

func (a *API) suppress(x *responseWriter, r *http.Request, c caller) error {
	var in SuppressionRequest
	if err := httpio.ReadJSON(x, r, &in); err != nil {
		return err
	}
	s, err := a.suppressionScope(c, in.AllServices)
	if err != nil {
		return err
	}
	if in.Address == "" {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/address", Message: "address is missing"}
	}
	record, err := a.deps.Suppressions.CheckSuppression(in.ask(s, suppression.ReasonManual))
	if err != nil {
		return err
	}
	if _, err := a.deps.Suppressions.SuppressRecords(r.Context(), []suppression.Record{record}); err != nil {
		return err
	}
	is, err := a.deps.Suppressions.Suppression(r.Context(), s, in.Address)
	if err != nil {
		return err
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", is)
}
