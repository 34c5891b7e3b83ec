package notifier

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

const (
	// Source is that of all events that Fanfare publishes.
	Source = "/fanfare"
	// maxTold is how many an event tells of, and maxBytes what those take at most, so
	// that its data stay below what intake takes, whatever a next hop answers.
	maxTold  = 200
	maxBytes = 224 << 10
	// maxText is how much of an answer is told, in bytes.
	maxText = 200
	// maxSubscriptions is how many subscriptions of a delivery are named.
	maxSubscriptions = 3
)

// An Outcome is what became of one delivery, and what it is told as.
type Outcome struct {
	*fanfare.Entry
	Name    string                 // of the entry for good: no two have the same
	Of      *fanfare.AcceptedEvent // what set the delivery off
	Channel string

	Subscriber    string   // public id
	Subscriptions []string // public ids
}

// Data is the data of an event. Empty fields are omitted.
type Data struct {
	Kind       string        `json:"kind"`              // accepted, delivered, deferred, bounced, failed, complained, expired, cancelled or suppressed
	Class      fanfare.Class `json:"class,omitempty"`   // why
	Channel    string        `json:"channel,omitempty"` // that they left by
	Topic      string        `json:"topic,omitempty"`   // of the event that set them off
	Event      string        `json:"event"`             // its id here: evt-…, of a message msg-…
	ID         string        `json:"id,omitempty"`      // its id as its sender gave it
	Source     string        `json:"source,omitempty"`
	Reference  string        `json:"reference,omitempty"` // of a message
	Count      int           `json:"count"`
	Deliveries []Delivery    `json:"deliveries"`
}

// A Delivery is one of those that an event tells of.
type Delivery struct {
	Delivery      string    `json:"delivery"`
	Attempt       uint16    `json:"attempt"` // of two outcomes of a delivery that with the higher one is the later
	At            time.Time `json:"at"`
	Subscriber    string    `json:"subscriber,omitempty"`
	Subscriptions []string  `json:"subscriptions,omitempty"`
	Code          int       `json:"code,omitempty"`
	Text          string    `json:"text,omitempty"` // without addresses
}

// shared is what the deliveries of one event have in common.
type shared struct {
	service, topic, kind, channel string
	class                         fanfare.Class
	of                            fanfare.EventRef
}

// Events tells of outcomes, in their order.
func Events(outcomes []Outcome) ([]fanfare.AcceptedEvent, error) {
	open := map[shared]int{} // index of the event that is not full yet
	var events []fanfare.AcceptedEvent
	var told []Data
	var sizes []int // what their deliveries take
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
			return nil, fmt.Errorf("what became of deliveries: %w", err)
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

// mostBytes is what a delivery takes in JSON at most.
func (d *Delivery) mostBytes() int {
	most := 256 + sizeInJSON(d.Subscriber) + sizeInJSON(d.Text) // what is not a text is short
	for _, id := range d.Subscriptions {
		most += sizeInJSON(id)
	}
	return most
}

// sizeInJSON is what a line of text takes in JSON, with its quotes and a comma.
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

// withoutAddresses is a text of which words with an @ are hidden, and no more of it
// than is told.
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
