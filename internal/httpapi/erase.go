package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// Forgetting forgets people for good.
type Forgetting interface {
	// Erase returns when nothing of the subscriber is left. When ctx ends
	// earlier, the erasure goes on.
	Erase(ctx context.Context, service, id string, suppress bool) (Erased, error)
}

// An EraseRequest says how a person is forgotten.
type EraseRequest struct {
	Suppress bool `json:"suppress,omitempty" doc:"put the addresses on the suppression list, as keyed hashes: nobody can subscribe or write to them again"`
}

// Erased says what an erasure was about.
type Erased struct {
	Subscriptions int `json:"subscriptions" doc:"how many ended by it"`
	Deliveries    int `json:"deliveries" doc:"how many stay, counted, without a person"`
}

func (a *API) eraseRoutes() {
	erase := huma.Operation{OperationID: "erase-subscriber", Method: http.MethodPost, Path: "/v1/subscribers/{id}/erase", Tags: []string{"subscribers"},
		Summary: "Forget a person: in the registry, in the history, and in messages",
		Description: "The response is sent when no file of the server has data of the person any more: addresses, id, locale, attributes, and the texts of subscriptions and messages about them. " +
			"The request waits for messages that are being sent. Counts remain, and deliveries remain without the person. The erasure continues if the client disconnects, also after a restart. Deleted subscribers can be erased.",
		Parameters:  []*huma.Param{param("id", "chosen by the client, or per-..."), service()},
		RequestBody: body[EraseRequest](a, "How", "application/json")}
	replies[Erased](a, &erase, http.StatusOK, "Nothing is left", "application/json")
	a.handle(erase, maySubscribe, func(x *responseWriter, r *http.Request, c caller) error {
		s, err := a.oneService(c)
		if err != nil {
			return err
		}
		var in EraseRequest
		if err := httpio.ReadJSON(x, r, &in); err != nil {
			return err
		}
		httpio.AllowLongResponse(x)
		erased, err := a.deps.Forgetting.Erase(r.Context(), s, r.PathValue("id"), in.Suppress)
		if err != nil {
			return err
		}
		return httpio.WriteJSON(x, http.StatusOK, "application/json", erased)
	})
}
