package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare"
)

// Mailboxes remove the messages of broadcasts from the mailboxes of subscribers.
type Mailboxes interface {
	// Recall removes the messages that their recipients have not opened, and refuses later ones.
	Recall(ctx context.Context, event fanfare.EventRef) error
	// Expire sets the time at which all messages are removed; the zero time is never.
	Expire(ctx context.Context, event fanfare.EventRef, at time.Time) error
}

// Recalls recall broadcasts from mailboxes and let them expire.
type Recalls struct {
	Switches  *Switches
	Mailboxes Mailboxes
}

// inboxDriver is the driver of the channels that store messages in mailboxes.
const inboxDriver = "inbox"

// Recall cancels the messages of a broadcast that are not yet in a mailbox, and removes those that their recipients have not opened. Messages in
// other channels are not affected. It is durable on return; the messages are removed in the background.
func (r *Recalls) Recall(ctx context.Context, event fanfare.EventRef) error {
	channels, err := r.channels(ctx, event)
	if err != nil {
		return err
	}
	if err := r.Switches.cancelIn(ctx, event, channels, "recalled"); err != nil {
		return err
	}
	return r.Mailboxes.Recall(ctx, event) // last, so that a message that was being stored is removed, too
}

// Expire sets the time at which the messages of a broadcast are removed from mailboxes; the zero time is never. Messages that are delivered later
// are refused.
func (r *Recalls) Expire(ctx context.Context, event fanfare.EventRef, at time.Time) error {
	if _, err := r.channels(ctx, event); err != nil {
		return err
	}
	return r.Mailboxes.Expire(ctx, event, at)
}

// channels returns the channels through which a broadcast reaches mailboxes. It fails with Conflict if there is none.
func (r *Recalls) channels(ctx context.Context, event fanfare.EventRef) (numbers []uint16, err error) {
	manifests, err := r.Switches.options.Store.Manifests(ctx, event)
	if err != nil {
		return nil, err
	}
	for i := range manifests {
		for j := range manifests[i].Sections {
			number := manifests[i].Sections[j].Channel
			if slices.Contains(numbers, number) {
				continue
			}
			if channel, known := r.Switches.options.Registry.Channel(number); known && channel.Driver == inboxDriver {
				numbers = append(numbers, number)
			}
		}
	}
	if len(numbers) == 0 {
		return nil, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("broadcast %s has no messages in mailboxes", event),
			Hint: "only messages of channels with the driver inbox can be recalled or expire; `fanfare cancel --broadcast` cancels messages that have not been sent"}
	}
	return numbers, nil
}

// cancelIn settles the open deliveries of a broadcast in some channels as cancelled. A broadcast that has ended has none.
func (s *Switches) cancelIn(ctx context.Context, event fanfare.EventRef, channels []uint16, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.options.Store.Broadcast(ctx, event)
	if err != nil {
		return err
	}
	if !b.Stages.Completed.IsZero() || b.State == fanfare.SwitchCancelled {
		return nil
	}
	changes := make([]fanfare.Switch, len(channels))
	for i, number := range channels {
		changes[i] = fanfare.Switch{Event: event, Channel: number, State: fanfare.SwitchCancelled, Reason: reason}
	}
	if err := s.set(ctx, changes); err != nil {
		return err
	}
	s.options.DropStopped()
	s.Release(ctx, event)
	return nil
}
