package notifier

import (
	"encoding/json"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
)

// A News is a change of a subscription, or of the suppression of a subscriber's address.
type News struct {
	Name    string // unique and permanent name of the change
	Service string
	Kind    string // subscribed, changed, unsubscribed or resubscribed; suppressed or lifted
	Source  string // source of the change
	Reason  string // reason, one word
	At      time.Time

	Subscription string // public id; "" if the change is about an address
	Topic        string // topic of the subscription
	Channel      string
	Fields       []string // fields that were changed

	Subscriber  string    // public id
	Address     string    // kind of the address: mail or url
	Until       time.Time // zero: permanent
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

// A Subscription is one subscription in an event.
type Subscription struct {
	Subscription string    `json:"subscription"`
	Subscriber   string    `json:"subscriber,omitempty"`
	At           time.Time `json:"at"`
	Fields       []string  `json:"fields,omitempty"` // fields that were changed
}

// SuppressionsData is the data of an event about suppressions.
type SuppressionsData struct {
	Kind         string        `json:"kind"`
	Source       string        `json:"source"`
	Reason       string        `json:"reason"`
	AllServices  bool          `json:"all_services,omitempty"`
	Count        int           `json:"count"`
	Suppressions []Suppression `json:"suppressions"`
}

// A Suppression is one suppression in an event.
type Suppression struct {
	Subscriber string    `json:"subscriber"`
	Address    string    `json:"address"` // mail or url
	At         time.Time `json:"at"`
	Until      time.Time `json:"until,omitzero"`
}

// common holds the values that all changes of one event share.
type common struct {
	service, kind, source, reason, topic, channel string
	suppression, allServices                      bool
}

// OfPeople returns the events that report all changes, in their order within an event.
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
			return nil, fmt.Errorf("cannot read the stored changes of subscriptions: %w", err)
		}
	}
	return events, nil
}

// data returns the data of an event.
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
