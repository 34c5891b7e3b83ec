package notifier

import (
	"encoding/json"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
)

// A News is what happened to a subscription, or what the suppression list says anew
// of an address of a subscriber.
type News struct {
	Name    string // of the news for good: no two have the same
	Service string
	Kind    string // subscribed, changed, unsubscribed or resubscribed; suppressed or lifted
	Source  string // what brought it about
	Reason  string // why, in one word
	At      time.Time

	Subscription string // public id; "": it is about an address
	Topic        string // of the subscription, and Channel
	Channel      string
	Fields       []string // that were changed

	Subscriber  string    // public id
	Address     string    // its kind, mail or url
	Until       time.Time // zero: for good
	AllServices bool
}

// SubscriptionsData is the data of an event about subscriptions. Empty fields are omitted.
type SubscriptionsData struct {
	Kind          string         `json:"kind"`
	Source        string         `json:"source"`
	Reason        string         `json:"reason,omitempty"`
	Topic         string         `json:"topic"`
	Channel       string         `json:"channel,omitempty"`
	Count         int            `json:"count"`
	Subscriptions []Subscription `json:"subscriptions"`
}

// A Subscription is one of those that an event tells of.
type Subscription struct {
	Subscription string    `json:"subscription"`
	Subscriber   string    `json:"subscriber,omitempty"`
	At           time.Time `json:"at"`
	Fields       []string  `json:"fields,omitempty"` // that were changed
}

// SuppressionsData are what an event tells of suppressions.
type SuppressionsData struct {
	Kind         string        `json:"kind"`
	Source       string        `json:"source"`
	Reason       string        `json:"reason"`
	AllServices  bool          `json:"all_services,omitempty"`
	Count        int           `json:"count"`
	Suppressions []Suppression `json:"suppressions"`
}

// A Suppression is one of those that an event tells of.
type Suppression struct {
	Subscriber string    `json:"subscriber"`
	Address    string    `json:"address"` // mail or url
	At         time.Time `json:"at"`
	Until      time.Time `json:"until,omitzero"`
}

// common is what the changes of one event have in common.
type common struct {
	service, kind, source, reason, topic, channel string
	suppression, allServices                      bool
}

// OfPeople tells of news, in their order within an event.
func OfPeople(news []News) ([]fanfare.AcceptedEvent, error) {
	open := map[common]int{} // index of the event that is not full yet
	var events []fanfare.AcceptedEvent
	var told [][]*News
	var of []common
	for i := range news {
		c := &news[i]
		key := common{c.Service, c.Kind, c.Source, c.Reason, c.Topic, c.Channel, c.Subscription == "", c.AllServices}
		at, known := open[key]
		if !known || len(told[at]) == maxTold {
			at = len(events)
			open[key] = at
			topic, what := fanfare.TopicSubscriptions, "subscription."
			if key.suppression {
				topic, what = fanfare.TopicSuppressions, "address."
			}
			events = append(events, fanfare.AcceptedEvent{Service: c.Service, Topic: topic, Lane: fanfare.TopicLane,
				Event: fanfare.Event{ID: c.Name, Source: Source, Type: fanfare.ReservedPrefix + what + c.Kind, Time: c.At}})
			told, of = append(told, nil), append(of, key)
		}
		told[at] = append(told[at], c)
	}
	for i := range events {
		var err error
		if events[i].Event.Data, err = json.Marshal(of[i].data(told[i])); err != nil {
			return nil, fmt.Errorf("what became of subscriptions: %w", err)
		}
	}
	return events, nil
}

// data are those of an event.
func (k *common) data(told []*News) any {
	if k.suppression {
		d := SuppressionsData{Kind: k.kind, Source: k.source, Reason: k.reason, AllServices: k.allServices, Count: len(told)}
		for _, c := range told {
			d.Suppressions = append(d.Suppressions, Suppression{c.Subscriber, c.Address, c.At.UTC(), c.Until})
		}
		return &d
	}
	d := SubscriptionsData{Kind: k.kind, Source: k.source, Reason: k.reason, Topic: k.topic, Channel: k.channel, Count: len(told)}
	for _, c := range told {
		d.Subscriptions = append(d.Subscriptions, Subscription{c.Subscription, c.Subscriber, c.At.UTC(), c.Fields})
	}
	return &d
}
