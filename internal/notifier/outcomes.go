package notifier

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

const (
	// Source is the CloudEvents source of all events that Fanfare publishes.
	Source = "/fanfare"
	// maxTold is the maximum number of deliveries in an event, and maxBytes their maximum size. The
	// data of an event therefore stays below the limit of intake, even if next hops send long replies.
	maxTold  = 200
	maxBytes = 224 << 10
	// maxText is the maximum length of a reported reply, in bytes.
	maxText = 200
	// maxSubscriptions is the maximum number of subscriptions listed for a delivery.
	maxSubscriptions = 3
)

// An Outcome is the outcome of one delivery with the values that are reported.
type Outcome struct {
	*fanfare.Entry
	Name    string                 // unique and permanent name of the entry
	Of      *fanfare.AcceptedEvent // the event that caused the delivery
	Channel string

	Subscriber    string   // public id
	Subscriptions []string // public ids
}

// Data is the data of an event. Empty fields are omitted.
type Data struct {
	Kind       string        `json:"kind"`              // accepted, delivered, deferred, bounced, failed, complained, expired, cancelled or suppressed
	Class      fanfare.Class `json:"class,omitempty"`   // why the delivery failed
	Channel    string        `json:"channel,omitempty"` // channel of the deliveries
	Topic      string        `json:"topic,omitempty"`   // topic of the event that caused the deliveries
	Event      string        `json:"event"`             // id in Fanfare: evt-…, or msg-… of a message
	ID         string        `json:"id,omitempty"`      // id given by the sender
	Source     string        `json:"source,omitempty"`
	Reference  string        `json:"reference,omitempty"` // of a message
	Count      int           `json:"count"`
	Deliveries []Delivery    `json:"deliveries"`
}

// A Delivery is one delivery in an event.
type Delivery struct {
	Delivery      string    `json:"delivery"`
	Attempt       uint16    `json:"attempt"` // if a delivery has two outcomes, the one with the higher attempt is later
	At            time.Time `json:"at"`
	Subscriber    string    `json:"subscriber,omitempty"`
	Subscriptions []string  `json:"subscriptions,omitempty"`
	Code          int       `json:"code,omitempty"`
	Text          string    `json:"text,omitempty"` // without addresses
}

// shared holds the values that all deliveries of one event share.
type shared struct {
	service, topic, kind, channel string
	class                         fanfare.Class
	of                            fanfare.EventRef
}

// Events returns the events that report outcomes, in their order.
func Events(outcomes []Outcome) ([]fanfare.AcceptedEvent, error) {
	open := map[shared]int{} // index of the event that is not full yet
	var events []fanfare.AcceptedEvent
	var told []Data
	var sizes []int // sizes of their deliveries
	for i := range outcomes {
		o := &outcomes[i]
		one := o.delivery()
		topic, kind := o.ToldAs()
		key := shared{o.Of.Service, topic, kind, o.Channel, o.Class, o.Of.Ref()}
		at, known := open[key]
		if !known || len(told[at].Deliveries) == maxTold || sizes[at]+one.mostBytes() > maxBytes {
			at = len(events)
			open[key] = at
			events = append(events, fanfare.AcceptedEvent{
				Service: key.service, Topic: topic, Lane: fanfare.TopicLane,
				Event: fanfare.Event{ID: o.Name, Source: Source, Type: fanfare.ReservedPrefix + "delivery." + kind, Time: o.At},
			})
			told, sizes = append(told, o.data(kind)), append(sizes, 0)
		}
		told[at].Deliveries = append(told[at].Deliveries, one)
		sizes[at] += one.mostBytes()
	}
	for i := range events {
		told[i].Count = len(told[i].Deliveries)
		var err error
		if events[i].Event.Data, err = json.Marshal(&told[i]); err != nil {
			return nil, fmt.Errorf("cannot read the stored outcomes of deliveries: %w", err)
		}
	}
	return events, nil
}

func (o *Outcome) data(kind string) Data {
	d := Data{Kind: kind, Class: o.Class, Channel: o.Channel, Topic: o.Of.Topic, Event: o.Of.Ref().String()}
	switch direct := o.Of.Direct; {
	case direct != nil:
		d.Event, d.Reference = o.Of.Ref().MessageID(), direct.Reference
	case o.Of.Run == nil:
		d.ID, d.Source = o.Of.Event.ID, o.Of.Event.Source
	}
	return d
}

func (o *Outcome) delivery() Delivery {
	return Delivery{
		Delivery: o.Delivery.String(), Attempt: o.Attempt, At: o.At.UTC(), Subscriber: o.Subscriber,
		Subscriptions: o.Subscriptions[:min(len(o.Subscriptions), maxSubscriptions)], Code: o.Code, Text: withoutAddresses(o.Text),
	}
}

// mostBytes returns the maximum size of a delivery in JSON.
func (d *Delivery) mostBytes() int {
	most := 256 + sizeInJSON(d.Subscriber) + sizeInJSON(d.Text) // all other fields are short
	for _, id := range d.Subscriptions {
		most += sizeInJSON(id)
	}
	return most
}

// sizeInJSON returns the size of a line of text in JSON, with its quotes and a comma.
func sizeInJSON(text string) int {
	size := len(text) + len(`"",`)
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c == '<', c == '>', c == '&': // as \u003c
			size += 5
		case c == '"', c == '\\':
			size++
		}
	}
	return size
}

// withoutAddresses masks the words of a text that contain @ and shortens the text to the reported
// length.
func withoutAddresses(text string) string {
	if strings.Contains(text, "@") {
		words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
		for i, word := range words {
			if strings.Contains(word, "@") {
				words[i] = "[address]"
			}
		}
		text = strings.Join(words, " ")
	}
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}
