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

// Suppressions stores the addresses that cannot be subscribed and get no messages. A
// service of "" means the list for all services.
type Suppressions interface {
	Suppression(ctx context.Context, service, address string) (suppression.Suppression, error)
	// CheckSuppression validates a request. SuppressRecords stores records, and counts
	// those that changed the list.
	CheckSuppression(ask *suppression.Request) (suppression.Record, error)
	SuppressRecords(ctx context.Context, records []suppression.Record) (added []bool, err error)
	Unsuppress(ctx context.Context, service, address string) error
	// Suppressions returns a page, the latest first; EachSuppression visits all entries.
	Suppressions(ctx context.Context, f suppression.Filter, after *suppression.Cursor, limit int) (page []suppression.Suppression, next *suppression.Cursor, err error)
	EachSuppression(ctx context.Context, f suppression.Filter, visit func(*suppression.Suppression) error) error
}

// A SuppressionRequest has an address to suppress.
type SuppressionRequest struct {
	Address     string    `json:"address,omitempty" doc:"email address, or URL of a webhook receiver"`
	Hash        string    `json:"hash,omitempty" doc:"instead of address: the hash from an export of this server, if the address is no longer stored"`
	Reason      string    `json:"reason,omitempty" enum:"soft_bounces,imported,unsubscribed,hard_bounce,manual,complaint,erased" doc:"reason, from the weakest to the strongest; the stronger reason of two remains. Default: manual, or imported for a list"`
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

// A SuppressionAdded is the response to one line of a list.
type SuppressionAdded struct {
	Added bool `json:"added" doc:"false: the entry changed nothing"`
}

// SuppressionList is a page of suppressions.
type SuppressionList struct {
	Suppressions []suppression.Suppression `json:"suppressions" doc:"suppressions, the latest first"`
	Next         string                    `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

type suppressedAddress struct {
	Named
	Address     string `query:"address" required:"true" doc:"address to look up or remove"`
	AllServices bool   `query:"all_services" doc:"only entries for all services; requires a key with the scope admin for all services"`
}

func (a *API) suppressionRoutes() {
	const one = "/v1/suppressions"
	tags := []string{"subscribers"}
	read(a, huma.Operation{OperationID: "get-suppression", Method: http.MethodGet, Path: one, Tags: tags,
		Summary: "Check whether an address is suppressed, and why", Description: "Returns the entry of the service or, if there is none, the entry for all services."}, mayLookUp,
		func(ctx context.Context, c caller, in *suppressedAddress) (suppression.Suppression, error) {
			s, err := a.suppressionScope(c, in.AllServices)
			if err != nil {
				return suppression.Suppression{}, err
			}
			return a.deps.Suppressions.Suppression(ctx, s, in.Address)
		})

	add := huma.Operation{OperationID: "suppress", Method: http.MethodPost, Path: one, Tags: tags,
		Summary: "Add an address to the suppression list",
		Description: "After the response, no further messages are sent to the address: waiting messages are settled as suppressed, with the reason. " +
			"If the address is already on the list, the stronger reason and the later end remain.",
		Parameters: []*huma.Param{service()}, RequestBody: body[SuppressionRequest](a, "The address and the reason", "application/json")}
	replies[suppression.Suppression](a, &add, http.StatusOK, "The entry in the list", "application/json")
	a.handle(add, maySubscribe, a.suppress)

	act(a, huma.Operation{OperationID: "lift-suppression", Method: http.MethodDelete, Path: one, Tags: tags,
		Summary: "Remove an address from the suppression list", Description: "Do this when the owner of the address asks for messages again, or when the mailbox works again."}, maySubscribe,
		func(ctx context.Context, c caller, in *suppressedAddress) error {
			s, err := a.suppressionScope(c, in.AllServices)
			if err != nil {
				return err
			}
			return a.deps.Suppressions.Unsuppress(ctx, s, in.Address)
		})
	a.suppressionListRoutes()
}

// suppressionScope returns the service of a request, or "" for the list of all services,
// which only operators can use.
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
