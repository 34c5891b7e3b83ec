package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
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
	// TestCondition tries a condition on an event. previous is the data of the previous event with the same key; nil: the last event of the key.
	TestCondition(service, topic string, in wire.ConditionTest, event *fanfare.Event, previous json.RawMessage) (wire.ConditionResult, error)
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
	test := huma.Operation{OperationID: "test-condition", Method: http.MethodPost, Path: "/v1/topics/{topic}/test-condition", Tags: []string{"subscriptions"},
		Summary:     "Try a condition on an event, without a subscription",
		Description: "Returns whether the event meets the condition, with the result of each part. An error in the condition has its line and column. Nothing is stored or sent.",
		Parameters:  []*huma.Param{param("topic", "name of the topic"), service()}, RequestBody: body[wire.ConditionTest](a, "The condition and the event", "application/json")}
	replies[wire.ConditionResult](a, &test, http.StatusOK, "The result, part by part", "application/json")
	a.handle(test, mayTry, a.testCondition)
}

func (a *API) testCondition(x *responseWriter, r *http.Request, c caller) error {
	s, err := a.oneService(c)
	if err != nil {
		return err
	}
	var in wire.ConditionTest
	if err := httpio.ReadJSON(x, r, &in); err != nil {
		return err
	}
	topic, hasData := r.PathValue("topic"), len(in.Data) > 0 && string(in.Data) != "null"
	switch {
	case (in.Condition == "") == (in.Rule == ""):
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/condition", Message: "the request needs either a condition or a rule", Hint: "set one of them"}
	case hasData == (in.Event != ""):
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/data", Message: "the request needs either data or an event", Hint: "set one of them"}
	}
	event, previous := &fanfare.Event{Type: topic, Time: a.now(), Data: in.Data}, in.Previous
	if in.Event != "" {
		if event, err = a.eventOf(r.Context(), c, topic, in.Event); err != nil {
			return err
		}
		if previous == nil {
			previous = json.RawMessage("null") // the last event of the key may be this one, or a later one
		}
	}
	result, err := a.deps.Conditions.TestCondition(s, topic, in, event, previous)
	if err != nil {
		return err
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", result)
}

// eventOf returns an accepted event of a topic.
func (a *API) eventOf(ctx context.Context, c caller, topic, id string) (*fanfare.Event, error) {
	if err := c.must(mayRead); err != nil {
		return nil, err
	}
	_, b, err := a.event(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if b.Topic != topic {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/event", Message: "the event is not of the topic " + topic, Hint: "choose an event of the topic"}
	}
	return &fanfare.Event{ID: b.SourceID, Source: b.Source, Type: b.Type, Subject: b.Subject, Time: b.Time, Data: b.Data, Extensions: b.Extensions}, nil
}
