package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// Forgetting erases subscribers permanently.
type Forgetting interface {
	// Erase returns when no data of the subscriber remain. If ctx ends earlier, the
	// erasure continues.
	Erase(ctx context.Context, service, id string, suppress bool) (Erased, error)
}

// An EraseRequest has the options of an erasure.
type EraseRequest struct {
	Suppress bool `json:"suppress,omitempty" doc:"add keyed hashes of the addresses to the suppression list, so that they can no longer be subscribed or receive messages"`
}

// Erased is the result of an erasure.
type Erased struct {
	Subscriptions int `json:"subscriptions" doc:"number of subscriptions that ended"`
	Deliveries    int `json:"deliveries" doc:"number of deliveries that remain without personal data"`
}

func (a *API) eraseRoutes() {
	erase := huma.Operation{OperationID: "erase-subscriber", Method: http.MethodPost, Path: "/v1/subscribers/{id}/erase", Tags: []string{"subscribers"},
		Summary: "Erase all data of a subscriber, including the history and messages",
		Description: "The response is sent when no file of the server contains data of the subscriber any more: addresses, id, locale, attributes, and the texts of their subscriptions and messages. " +
			"The request waits for messages that are being sent. Counts remain, and deliveries remain without personal data. The erasure continues if the client disconnects or the server restarts. Deleted subscribers can also be erased.",
		Parameters:  []*huma.Param{param("id", "id of the subscriber: your own id, or per-..."), service()},
		RequestBody: body[EraseRequest](a, "The options", "application/json")}
	replies[Erased](a, &erase, http.StatusOK, "The data is erased", "application/json")
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
