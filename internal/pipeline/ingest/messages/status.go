package messages

import (
	"context"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Message returns a message and its state. It does not find messages of other services or other events.
func (m *Messages) Message(ctx context.Context, service string, ref fanfare.EventRef) (wire.Message, error) {
	posted, err := m.Posted(ctx, service, ref)
	if err != nil {
		return wire.Message{}, err
	}
	return m.State(ctx, posted)
}

// Posted returns the event of a message. It does not find messages of other services or other events.
func (m *Messages) Posted(ctx context.Context, service string, ref fanfare.EventRef) (*fanfare.AcceptedEvent, error) {
	posted, err := m.options.Accepted(ctx, ref)
	if err != nil {
		if fanfare.CodeOf(err) == fanfare.NotFound {
			err = unknownMessage(ref)
		}
		return nil, err
	}
	if posted.Direct == nil || service != "" && posted.Service != service {
		return nil, unknownMessage(ref)
	}
	return posted, nil
}

// State returns the message of an event with its current state.
func (m *Messages) State(ctx context.Context, posted *fanfare.AcceptedEvent) (wire.Message, error) {
	ref := posted.Ref()
	var err error
	var message wire.Message
	for range maxReads { // until the counts and the delivery agree
		if message, err = m.progress(ctx, posted); err != nil || posted.Direct.List {
			return message, err
		}
		found, _, err := m.options.Traces.Deliveries(ctx, ref, "", 1)
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

// maxReads is the number of times that a message is read if it changes during the read.
const maxReads = 3

func unknownMessage(ref fanfare.EventRef) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no message %q", ref.MessageID()), Hint: "the message may be older than retention_days"}
}

// Await returns a channel that is closed when a message is settled.
func (m *Messages) Await(ref fanfare.EventRef) (done <-chan struct{}, forget func()) {
	return m.options.Recorder.Await(ref)
}

// describe returns a message as it is when it is accepted.
func (m *Messages) describe(posted *fanfare.AcceptedEvent) wire.Message {
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
	if c, ok := m.options.Registry.Channel(d.Channel); ok {
		message.Channel = c.Name
	}
	if s, ok := m.options.Registry.Template(d.Template); ok {
		message.Template = fmt.Sprintf("%s@%d", s.Name, s.Version)
	}
	return message
}

// progress returns a message with its current state.
func (m *Messages) progress(ctx context.Context, posted *fanfare.AcceptedEvent) (wire.Message, error) {
	message := m.describe(posted)
	b, err := m.options.Traces.Broadcast(ctx, posted.Ref())
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

// WithReference lists the messages of a service with a reference, the newest first. With before, it lists only older
// ones.
func (m *Messages) WithReference(ctx context.Context, service, reference string, before fanfare.EventRef, limit int) ([]wire.Message, error) {
	list := []wire.Message{}
	days, err := m.options.Store.Days(ctx)
	if err != nil {
		return nil, err
	}
	for _, day := range days {
		if before.Day != 0 && day > before.Day {
			continue
		}
		found, err := m.options.Store.FindReference(ctx, day, service, reference)
		if fanfare.CodeOf(err) == fanfare.NotFound && err != nil { // the day was removed in the meantime
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, seq := range found {
			if day == before.Day && seq >= before.Seq {
				continue
			}
			posted, err := m.options.Store.Posted(ctx, fanfare.EventRef{Day: day, Seq: seq})
			if err != nil {
				return nil, err
			}
			message, err := m.progress(ctx, posted)
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
