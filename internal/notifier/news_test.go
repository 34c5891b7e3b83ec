package notifier

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// manySubscribers returns changes of several kinds, many of each.
func manySubscribers(many int) (all []News) {
	for n := range many {
		one := News{Name: fmt.Sprint("n-", n), Service: "news", Source: "api", At: noon.Add(time.Duration(n)), Subscriber: fmt.Sprint("per-", n)}
		switch n % 4 {
		case 0, 1:
			one.Kind, one.Subscription, one.Topic, one.Channel = "unsubscribed", fmt.Sprint("sub-", n), []string{"story", "storm"}[n%2], "email"
		case 2:
			one.Kind, one.Reason, one.Address, one.Until = "suppressed", "soft_bounces", "mail", noon.Add(time.Hour)
		case 3:
			one.Kind, one.Reason, one.Address, one.AllServices = "suppressed", "soft_bounces", "mail", true
		}
		all = append(all, one)
	}
	return all
}

func TestEachNewsIsInOneEventWithThoseThatShareWhatConditionsAskFor(t *testing.T) {
	all := manySubscribers(3000)
	events, err := OfPeople(all)
	if err != nil || len(events) != 4*4 {
		t.Fatalf("%d events: %v", len(events), err)
	}
	again, _ := OfPeople(all)
	told, ids := map[string]int{}, map[string]bool{}
	for i := range events {
		e := &events[i]
		if ids[e.Event.ID] || e.Event.ID != again[i].Event.ID || string(e.Event.Data) != string(again[i].Event.Data) || e.Event.Source != Source || e.Service != "news" {
			t.Errorf("the event %s is not the same, or not the only one", e.Event.ID)
		}
		ids[e.Event.ID] = true
		switch e.Topic {
		case fanfare.TopicSubscriptions:
			var d SubscriptionsData
			if err := json.Unmarshal(e.Event.Data, &d); err != nil || d.Count != len(d.Subscriptions) || d.Count > maxTold || e.Event.Type != "fanfare.subscription."+d.Kind {
				t.Errorf("%v: %s %s", err, e.Event.Type, e.Event.Data)
			}
			for _, s := range d.Subscriptions {
				told[fmt.Sprint(d.Topic, s.Subscription, s.Subscriber, s.At.Sub(noon))]++
			}
		case fanfare.TopicSuppressions:
			var d SuppressionsData
			if err := json.Unmarshal(e.Event.Data, &d); err != nil || d.Count != len(d.Suppressions) || d.Count > maxTold || e.Event.Type != "fanfare.address."+d.Kind || d.Reason != "soft_bounces" {
				t.Errorf("%v: %s %s", err, e.Event.Type, e.Event.Data)
			}
			for _, s := range d.Suppressions {
				told[fmt.Sprint(d.AllServices, s.Address, s.Subscriber, s.At.Sub(noon), s.Until.IsZero())]++
			}
		}
	}
	for i := range all {
		n := &all[i]
		line := fmt.Sprint(n.Topic, n.Subscription, n.Subscriber, n.At.Sub(noon))
		if n.Subscription == "" {
			line = fmt.Sprint(n.AllServices, n.Address, n.Subscriber, n.At.Sub(noon), n.Until.IsZero())
		}
		if told[line] != 1 {
			t.Errorf("%s was told %d times", line, told[line])
		}
	}
	if len(told) != len(all) {
		t.Errorf("%d were told of %d", len(told), len(all))
	}
}
