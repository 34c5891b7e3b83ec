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
		Summary:     "List the conditions that no index supports, the most expensive first",
		Description: "Such a condition is evaluated for every event of its topic. The time is estimated from the parts of the condition, and the share of matching events from a sample of the events since the start of the server."}, mayRead,
		func(_ context.Context, c caller, in *report) (wire.ConditionReport, error) {
			s, err := a.oneService(c)
			if err != nil {
				return wire.ConditionReport{}, err
			}
			return a.deps.Conditions.Report(s, in.Topic, in.Limit)
		})
}
