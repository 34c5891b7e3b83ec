package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Conditions reports the cost of conditions and matches events in a dry run.
type Conditions interface {
	// Report covers one topic of the service, or all topics if topic is ""; limit is the
	// maximum number of conditions in it.
	Report(service, topic string, limit int) (wire.ConditionReport, error)
	// DryRun matches an event that is not published; sample is the number of
	// subscriptions to return.
	DryRun(ctx context.Context, event *fanfare.AcceptedEvent, sample int) (wire.DryRun, error)
}

func (a *API) conditionRoutes() {
	type report struct {
		Named
		Topic string `query:"topic" doc:"only conditions of this topic"`
		Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"maximum number of conditions"`
	}
	read(a, huma.Operation{OperationID: "report-conditions", Method: http.MethodGet, Path: "/v1/reports/conditions", Tags: []string{"subscriptions"},
		Summary:     "List the conditions that no index covers, the most expensive first",
		Description: "Such a condition is evaluated for every event of its topic. The time is estimated from the parts of the condition, and the share of matching events from a sample of the events since the server started."}, mayRead,
		func(_ context.Context, c caller, in *report) (wire.ConditionReport, error) {
			s, err := a.oneService(c)
			if err != nil {
				return wire.ConditionReport{}, err
			}
			return a.deps.Conditions.Report(s, in.Topic, in.Limit)
		})
}
