package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/pipeline/match"
)

// paramsOf returns the params of a subscription. A rule requires an object.
func paramsOf(s *people.Subscription) json.RawMessage {
	if s.Rule != "" && s.Params == nil {
		return json.RawMessage("{}")
	}
	return s.Params
}

// FoundBy returns the part of an event by which the index finds a subscription.
func (in *Inspector) FoundBy(s *people.Subscription) (string, error) {
	return in.opt.Index.IndexedBy(condition.Key{Service: s.Service, Topic: s.Topic}, s.Filter, s.Rule, paramsOf(s))
}

// InAudience reports whether a subscription is in the audience of an event.
func (in *Inspector) InAudience(ctx context.Context, s *people.Subscription, filter string) (bool, error) {
	event := &fanfare.AcceptedEvent{Audience: &fanfare.AudienceFilter{Filter: filter}}
	hits, err := in.opt.Audiences.Narrow(ctx, event, []fanfare.Hit{{Place: s.Place, Subscriber: s.Owner}})
	return len(hits) > 0, err
}

// Explain evaluates each part of the condition of a subscription. was is the data of the previous event with the same key.
func (in *Inspector) Explain(s *people.Subscription, event *fanfare.Event, was json.RawMessage) (fanfare.Part, error) {
	of := condition.EventOf(event)
	of.Previous = was
	return in.opt.Index.Explain(condition.Key{Service: s.Service, Topic: s.Topic}, condition.Entry{Filter: s.Filter, Rule: s.Rule, Params: paramsOf(s)}, of)
}

// SecondOpinion evaluates the condition of a subscription independently of the index, looks up the subscription in the index, and reports
// whether the condition is in quarantine.
func (in *Inspector) SecondOpinion(ctx context.Context, s *people.Subscription, event *fanfare.Event, was []byte) (report.Opinion, error) {
	topic, ok := in.opt.Registry.Topic(s.Service, s.Topic)
	if !ok {
		return report.Opinion{}, &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no topic " + s.Topic}
	}
	entry := condition.Entry{Place: s.Place, Filter: s.Filter, Rule: s.Rule, Params: paramsOf(s)}
	of := condition.EventOf(event)
	of.Previous = was
	verdict, err := in.opt.Verifier.Evaluate(match.VerifyTopic(topic), &entry, of)
	if err != nil {
		return report.Opinion{}, err
	}
	o := report.Opinion{Result: verdict.Result.String(), Reason: verdict.Reason}
	if q, is := in.opt.Verifier.InQuarantine(match.VerifyTopic(topic), &entry); is {
		o.Quarantined = fmt.Sprintf("since %s, when the index reported %[3]q and the evaluator reported %[4]q for the event %[2]s", q.Since.Format(time.RFC3339), q.Event, q.Index, q.Evaluator)
	}
	if s.State != "active" {
		return o, nil // it is not in the index
	}
	if err := in.lookups.Lock(ctx); err != nil {
		return o, err
	}
	defer in.lookups.Unlock()
	o.Indexed = true
	err = in.opt.Index.Places(condition.Key{Service: s.Service, Topic: s.Topic}, of, func(places []uint32) {
		for _, place := range places {
			o.Found = o.Found || fanfare.RowID(place) == s.Place
		}
	})
	return o, err
}

// TestCondition tries a condition that no subscription needs to have. previous is the data of the previous event with the same key; nil: the last event of the key,
// and null: none.
func (in *Inspector) TestCondition(service, topic string, test wire.ConditionTest, event *fanfare.Event, previous json.RawMessage) (wire.ConditionResult, error) {
	var out wire.ConditionResult
	t, err := in.topic(service, topic)
	if err != nil {
		return out, err
	}
	key := condition.Key{Service: service, Topic: topic}
	if test.Rule != "" {
		if test.Params == nil {
			test.Params = json.RawMessage("{}")
		}
		err = in.opt.Index.CheckParams(key, test.Rule, test.Params)
	} else {
		err = in.opt.Index.CheckFilter(key, test.Condition)
	}
	if err != nil {
		return out, inCondition(err)
	}
	if err := t.ValidateData(event.Data); err != nil {
		return out, err
	}
	if previous == nil {
		if previous, err = in.Before(service, topic, event.Data); err != nil {
			return out, err
		}
	}
	of := condition.EventOf(event)
	if string(previous) != "null" {
		of.Previous, out.Previous = previous, previous
	}
	out.Data = event.Data
	if out.Condition, err = in.opt.Index.Explain(key, condition.Entry{Filter: test.Condition, Rule: test.Rule, Params: test.Params}, of); err != nil {
		return out, inCondition(err)
	}
	out.Matches = out.Condition.Result == fanfare.PartTrue
	out.FoundBy, err = in.opt.Index.IndexedBy(key, test.Condition, test.Rule, test.Params)
	return out, err
}

// inCondition changes the pointer of an error about a filter to the member of a test.
func inCondition(err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok || e.Pointer != "/filter" {
		return err
	}
	at := *e
	at.Pointer = "/condition"
	return &at
}
