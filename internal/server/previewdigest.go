package server

import (
	"context"
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/render"
)

// sampleCadence is that of a digest for nobody in particular, and sampleItems how
// many made up events it tells of.
const (
	sampleCadence = "daily 08:00"
	sampleItems   = 2
)

const immediate = "immediate"

// maxPreviewed bounds the events of one preview.
const maxPreviewed = 100

// findEvents looks up the events of which a digest tells, in the order in which they
// are named. A message about one event has no others.
func (m *previewed) findEvents(ctx context.Context, template *render.Template) error {
	if len(m.in.Events) > 0 && !template.Digest() {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/events", Message: "the template is for one event", Hint: "name one event, or a template that reads items"}
	}
	if len(m.in.Events) > maxPreviewed {
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/events", Message: fmt.Sprintf("more than %d events", maxPreviewed)}
	}
	if m.posted != nil && template.Digest() {
		m.items = append(m.items, itemOf(m.posted))
	}
	for i, id := range m.in.Events {
		_, posted, err := m.event(ctx, id)
		if err != nil {
			return at(fmt.Sprintf("/events/%d", i), err)
		}
		if m.topic == nil {
			m.topic, _ = m.registry.Topic(m.service, posted.Topic)
		}
		m.items = append(m.items, itemOf(posted))
	}
	return nil
}

func itemOf(posted *fanfare.AcceptedEvent) *render.Item {
	event := posted.Event
	return &render.Item{Event: &event, Ref: posted.Ref(), Topic: posted.Topic}
}

// schemas are those of the topics whose events the template tells of.
func (m *previewed) schemas(template string) (all []json.RawMessage) {
	for _, t := range m.registry.Topics(m.service) {
		switch {
		case t.Digest.Template != template:
		case len(t.Schema) > 0:
			all = append(all, t.Schema)
		default: // which may have anything
			all = append(all, json.RawMessage("true"))
		}
	}
	if len(all) == 0 && m.topic != nil && len(m.topic.Schema) > 0 {
		all = append(all, m.topic.Schema)
	}
	return all
}

// collect makes the digest: of the events that were named, of the data that were
// given, or of made up ones. All of it is for the recipient's first subscription.
func (m *previewed) collect(event *fanfare.Event) *render.Digest {
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
		m.recipient.Items = append(m.recipient.Items, render.ItemOf{Number: uint32(i), Subscriptions: wanted})
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
	return &render.Digest{Due: m.clock.Now(), Cadence: text, Zone: compose.TimeZone(m.recipient.TimeZone, ""),
		Item: func(number uint32) *render.Item { return m.items[number] }}
}

// told are the data that were taken: of a digest of several events all of them, in a
// list.
func (m *previewed) told() json.RawMessage {
	if len(m.items) == 0 || m.in.Data != nil || m.posted == nil && len(m.in.Events) == 0 {
		return m.data
	}
	list := make([]json.RawMessage, len(m.items))
	for i, item := range m.items {
		list[i] = item.Event.Data
	}
	text, err := json.Marshal(list)
	if err != nil { // they were taken as JSON
		return nil
	}
	return text
}
