package server

import (
	"context"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Message returns a direct send and what has become of it. One of another
// service, and an event that is none, do not exist.
func (m *messages) Message(ctx context.Context, service string, ref fanfare.EventRef) (wire.Message, error) {
	posted, err := m.posted(ctx, ref)
	if err != nil {
		if fanfare.CodeOf(err) == fanfare.NotFound {
			err = unknownMessage(ref)
		}
		return wire.Message{}, err
	}
	if posted.Direct == nil || service != "" && posted.Service != service {
		return wire.Message{}, unknownMessage(ref)
	}
	var message wire.Message
	for range looks { // until the counts and the delivery are of one moment
		if message, err = m.sofar(ctx, posted); err != nil || posted.Direct.List {
			return message, err
		}
		found, _, err := m.traces.Deliveries(ctx, ref, "", "", 1)
		if err != nil || len(found) != 1 {
			return message, err
		}
		if message.Delivery = &found[0]; message.Delivery.State == message.State {
			return message, nil
		}
	}
	message.State = message.Delivery.State
	return message, nil
}

// looks is how often a message that goes on while it is read is read at most.
const looks = 3

func unknownMessage(ref fanfare.EventRef) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no message %q", ref.MessageID()), Hint: "it may be older than the retention"}
}

// Await returns a channel that is closed when a message is settled from now on.
func (m *messages) Await(ref fanfare.EventRef) (done <-chan struct{}, forget func()) {
	return m.recorder.Await(ref)
}

// describe says what is known of a direct send from the moment it is kept.
func (m *messages) describe(posted *fanfare.AcceptedEvent) wire.Message {
	d, ref := posted.Direct, posted.Ref()
	message := wire.Message{
		ID: ref.MessageID(), Event: ref.String(), Service: posted.Service, State: fanfare.Pending.String(), Reference: d.Reference,
		Lane: posted.Lane.String(), Recipients: len(d.Recipients), Stages: fanfare.Stages{Received: posted.ReceivedAt},
		Deliveries: "/v1/events/" + ref.String() + "/deliveries",
	}
	message.Attachments = wire.AttachmentsOf(d.Files)
	message.Counts[fanfare.Pending] = int64(len(d.Recipients))
	if d.List {
		message.State = "queued"
	}
	if c, ok := m.registry.Channel(d.Channel); ok {
		message.Channel = c.Name
	}
	if s, ok := m.registry.Template(d.Template); ok {
		message.Template = fmt.Sprintf("%s@%d", s.Name, s.Version)
	}
	return message
}

// sofar is describe with how far the message has come.
func (m *messages) sofar(ctx context.Context, posted *fanfare.AcceptedEvent) (wire.Message, error) {
	message := m.describe(posted)
	b, err := m.traces.Broadcast(ctx, posted.Ref())
	if err != nil {
		return message, err
	}
	message.Stages, message.Reason = b.Stages, b.Reason
	if b.Counts.Total() > 0 {
		message.Counts = b.Counts
	}
	if posted.Direct.List {
		message.State = b.State
		return message, nil
	}
	for state, n := range message.Counts {
		if n > 0 {
			message.State = fanfare.State(state).String()
		}
	}
	return message, nil
}

// WithReference lists the direct sends of a service that have a reference,
// those before a given one (zero: all), the latest first.
func (m *messages) WithReference(ctx context.Context, service, reference string, before fanfare.EventRef, limit int) ([]wire.Message, error) {
	list := []wire.Message{}
	days, err := m.store.Days(ctx)
	if err != nil {
		return nil, err
	}
	for _, day := range days {
		if before.Day != 0 && day > before.Day {
			continue
		}
		found, err := m.store.FindReference(ctx, day, service, reference)
		if fanfare.CodeOf(err) == fanfare.NotFound && err != nil { // the day was removed since
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, seq := range found {
			if day == before.Day && seq >= before.Seq {
				continue
			}
			posted, err := m.store.Posted(ctx, fanfare.EventRef{Day: day, Seq: seq})
			if err != nil {
				return nil, err
			}
			message, err := m.sofar(ctx, posted)
			if err != nil {
				return nil, err
			}
			if list = append(list, message); len(list) == limit {
				return list, nil
			}
		}
	}
	return list, nil
}
