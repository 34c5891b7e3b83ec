package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Conditions tells what conditions cost, and who is met by them.
type Conditions interface {
	// Report is about one topic of the service, or "" for all; limit is how many
	// conditions it names.
	Report(service, topic string, limit int) (wire.ConditionReport, error)
	// DryRun matches an event that is not published; sample is how many
	// subscriptions it names.
	DryRun(ctx context.Context, event *fanfare.AcceptedEvent, sample int) (wire.DryRun, error)
}

func (a *API) conditionRoutes() {
	type report struct {
		Named
		Topic string `query:"topic" doc:"only this one"`
		Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"how many conditions are named"`
	}
	read(a, huma.Operation{OperationID: "report-conditions", Method: http.MethodGet, Path: "/v1/reports/conditions", Tags: []string{"subscriptions"},
		Summary:     "What the conditions cost to which no index leads, the dearest first",
		Description: "Every event of a topic is held against such a condition. How long that takes is estimated from what the condition is made of; how often it is met is tried on some of the events that came since the server started."}, mayRead,
		func(_ context.Context, c caller, in *report) (wire.ConditionReport, error) {
			s, err := a.oneService(c)
			if err != nil {
				return wire.ConditionReport{}, err
			}
			return a.deps.Conditions.Report(s, in.Topic, in.Limit)
		})
}
