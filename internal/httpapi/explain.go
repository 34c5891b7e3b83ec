package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// Explaining explains why an event matches a subscription or not.
type Explaining interface {
	ExplainEvent(ctx context.Context, service, subscription string, event fanfare.EventRef) (fanfare.Explanation, error)
	// ExplainData explains an event with these data as if it arrived now; topic is the
	// topic that the client expects the subscription to have, or "".
	ExplainData(ctx context.Context, service, subscription, topic string, data json.RawMessage) (fanfare.Explanation, error)
}

type explainOf struct {
	Named
	ID    string `path:"id" doc:"id of the subscription"`
	Event string `query:"event" required:"true" doc:"event id (evt-...), or the id given by the sender"`
}

func (a *API) explainRoutes() {
	tags := []string{"subscriptions"}
	read(a, huma.Operation{OperationID: "explain-event", Method: http.MethodGet, Path: "/v1/subscriptions/{id}/explain", Tags: tags,
		Summary:     "Explain why an event matched a subscription or not",
		Description: "The explanation is based on the record of the match. The condition is shown part by part, as the topic defines it now."}, mayRead,
		func(ctx context.Context, c caller, in *explainOf) (fanfare.Explanation, error) {
			s, err := a.oneService(c)
			if err != nil {
				return fanfare.Explanation{}, err
			}
			ref, err := a.deps.Reports.FindEvent(ctx, s, in.Event)
			if err != nil {
				return fanfare.Explanation{}, err
			}
			return a.deps.Explaining.ExplainEvent(ctx, s, in.ID, ref)
		})

	post := huma.Operation{OperationID: "explain-data", Method: http.MethodPost, Path: "/v1/subscriptions/{id}/explain", Tags: tags,
		Summary:     "Explain whether an event with this data would match a subscription",
		Description: "The body is the event's data. Nothing is published.",
		Parameters:  []*huma.Param{param("id", "id of the subscription"), query("topic", "topic of the data; the explanation includes whether it is the topic of the subscription"), service()},
		RequestBody: body[any](a, "The event's data", "application/json")}
	replies[fanfare.Explanation](a, &post, http.StatusOK, "The explanation", "application/json")
	a.handle(post, mayRead, a.explainData)
}

func (a *API) explainData(x *responseWriter, r *http.Request, c caller) error {
	s, err := a.oneService(c)
	if err != nil {
		return err
	}
	if mt := httpio.MediaType(r.Header); mt != "" && mt != "application/json" {
		return httpio.UnknownType(mt, "application/json")
	}
	text, err := httpio.ReadBody(x, r)
	if err != nil {
		return err
	}
	var data json.RawMessage
	if err := json.Unmarshal(text, &data); err != nil {
		return httpio.DecodeError(text, err)
	}
	e, err := a.deps.Explaining.ExplainData(r.Context(), s, r.PathValue("id"), r.URL.Query().Get("topic"), data)
	if err != nil {
		return err
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", e)
}
