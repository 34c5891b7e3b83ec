package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func (a *API) approvalRoutes() {
	approve := huma.Operation{OperationID: "approve", Method: http.MethodPost, Path: "/v1/approve", Tags: []string{"operations"},
		Summary:     "Approve a broadcast that waits for approval",
		Description: "A broadcast with more messages than hold_above of its topic or service is held after the match. The key needs the scope approve. To reject the broadcast, cancel it.",
		Parameters:  []*huma.Param{service()}, RequestBody: body[wire.Approve](a, "The broadcast", "application/json")}
	replies[any](a, &approve, http.StatusNoContent, "Approved and durable")
	a.handle(approve, mayApprove, a.approve)

	rate := huma.Operation{OperationID: "set-rate", Method: http.MethodPost, Path: "/v1/rate", Tags: []string{"operations"},
		Summary:     "Set the rate of a broadcast or a channel",
		Description: "The rate is durable and in force within a second. The rate of a broadcast applies to all channels together, in addition to the rate of each channel. The rate of a channel overrides the configured one until you set it to configured.",
		Parameters:  []*huma.Param{service()}, RequestBody: body[wire.SetRate](a, "The scope and its rate", "application/json")}
	replies[any](a, &rate, http.StatusNoContent, "In force and durable")
	a.handle(rate, mayConfigure, a.setRate)
}

func (a *API) approve(x *responseWriter, r *http.Request, c caller) error {
	var in wire.Approve
	if err := httpio.ReadJSON(x, r, &in); err != nil {
		return err
	}
	ref, b, err := a.event(r.Context(), c, in.Event)
	if err != nil {
		return err
	}
	httpio.AllowLongResponse(x)
	if err := a.deps.Switches.Approve(r.Context(), ref.String(), c.principal.Title()); err != nil {
		return err
	}
	a.note(r.Context(), audit.Operation{Service: b.Service, Action: "approve", Kind: string(fanfare.ScopeBroadcast), Name: b.Event}, nil)
	x.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) setRate(x *responseWriter, r *http.Request, c caller) error {
	var in wire.SetRate
	if err := httpio.ReadJSON(x, r, &in); err != nil {
		return err
	}
	scope, err := a.reach(r.Context(), c, in.Scope)
	if err != nil {
		return err
	}
	var b fanfare.Broadcast
	if scope.Kind == fanfare.ScopeBroadcast {
		if _, b, err = a.event(r.Context(), c, scope.Name); err != nil {
			return err
		}
	}
	httpio.AllowLongResponse(x)
	if err := a.deps.Switches.SetRate(r.Context(), scope, in.Rate); err != nil {
		return err
	}
	if scope.Kind == fanfare.ScopeBroadcast { // the registry records the rate of a channel
		a.note(r.Context(), audit.Operation{Service: b.Service, Action: "rate", Kind: string(scope.Kind), Name: scope.Name},
			&audit.Detail{Fields: []audit.FieldChange{{Field: "rate", Old: b.RateLimit, New: in.Rate}}})
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}
