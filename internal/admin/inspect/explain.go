package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/condition"
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
