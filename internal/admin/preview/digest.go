package preview

import (
	"context"
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/render"
)

// sampleCadence is the cadence of a digest without a subscription, and sampleItems its number of sample events.
const (
	sampleCadence = "daily 08:00"
	sampleItems   = 2
)

const immediate = "immediate"

// maxPreviewed is the maximum number of events in one preview.
const maxPreviewed = 100

// findEvents looks up the events of a digest, in the order of the request. A message about one event has no others.
func (m *request) findEvents(ctx context.Context, template *render.Template) error {
	if len(m.in.Events) > 0 && !template.Digest() {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/events", Message: "the template is for a single event, but the request has several", Hint: "send one event, or use a template that uses items"}
	}
	if len(m.in.Events) > maxPreviewed {
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/events", Message: fmt.Sprintf("a preview can contain at most %d events", maxPreviewed)}
	}
	if m.posted != nil && template.Digest() {
		m.items = append(m.items, itemOf(m.posted))
	}
	for i, id := range m.in.Events {
		_, posted, err := m.event(ctx, id)
		if err != nil {
			return atPointer(fmt.Sprintf("/events/%d", i), err)
		}
		if m.topic == nil {
			m.topic, _ = m.Registry.Topic(m.service, posted.Topic)
		}
		m.items = append(m.items, itemOf(posted))
	}
	return nil
}

func itemOf(posted *fanfare.AcceptedEvent) *render.Item {
	event := posted.Event
	return &render.Item{Event: &event, Ref: posted.Ref(), Topic: posted.Topic}
}

// schemas returns the schemas of the topics that use the template for digests.
func (m *request) schemas(template string) (all []json.RawMessage) {
	for _, t := range m.Registry.Topics(m.service) {
		switch {
		case t.Digest.Template != template:
		case len(t.Schema) > 0:
			all = append(all, t.Schema)
		default: // without a schema, any data is valid
			all = append(all, json.RawMessage("true"))
		}
	}
	if len(all) == 0 && m.topic != nil && len(m.topic.Schema) > 0 {
		all = append(all, m.topic.Schema)
	}
	return all
}

// digest creates the digest from the events or the data of the request, or from sample events. All items are for the
// first subscription of the recipient.
func (m *request) digest(event *fanfare.Event) *render.Digest {
	topic := ""
	if m.topic != nil {
		topic = m.topic.Name
	}
	switch {
	case m.in.Data != nil:
		m.items = []*render.Item{{Event: event, Topic: topic}}
	case len(m.items) == 0:
		for range sampleItems {
			m.items = append(m.items, &render.Item{Event: event, Topic: topic})
		}
	}
	var wanted []uint32
	if len(m.recipient.Subscriptions) > 0 {
		wanted = []uint32{0}
	}
	for i := range m.items {
		m.recipient.Items = append(m.recipient.Items, render.RecipientItem{Number: uint32(i), Subscriptions: wanted})
	}
	text := immediate
	if m.subscription != nil {
		text = m.subscription.Cadence
	} else if m.topic != nil {
		text = m.topic.Cadence.String()
	}
	if text == immediate || text == "" {
		text = sampleCadence
	}
	return &render.Digest{Due: m.Clock.Now(), Cadence: text, Zone: compose.TimeZone(m.recipient.TimeZone, ""),
		Item: func(number uint32) *render.Item { return m.items[number] }}
}

// shownData returns the data of the message: for a digest of several events, a list with the data of each.
func (m *request) shownData() json.RawMessage {
	if len(m.items) == 0 || m.in.Data != nil || m.posted == nil && len(m.in.Events) == 0 {
		return m.data
	}
	list := make([]json.RawMessage, len(m.items))
	for i, item := range m.items {
		list[i] = item.Event.Data
	}
	text, err := json.Marshal(list)
	if err != nil { // the data was parsed as JSON before
		return nil
	}
	return text
}
