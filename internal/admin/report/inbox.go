package report

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
)

// Inboxes know what happened to messages in the mailboxes of subscribers.
type Inboxes interface {
	// InboxMessages returns the messages of deliveries, in the same order; nil for a delivery without one.
	InboxMessages(ctx context.Context, refs []fanfare.DeliveryRef) ([]*mailbox.InboxMessage, error)
	// InboxBroadcasts returns the counts of broadcasts, in the same order.
	InboxBroadcasts(ctx context.Context, events []fanfare.EventRef) ([]mailbox.InboxBroadcast, error)
}

// inboxTimes adds to delivered messages when they were read and removed. The deliveries start at a position of a manifest.
func (t *Traces) inboxTimes(ctx context.Context, day fanfare.Day, m *fanfare.Manifest, from uint32, list []fanfare.Delivery) error {
	if t.Inboxes == nil {
		return nil
	}
	var refs []fanfare.DeliveryRef
	var of []*fanfare.Delivery
	for i := range list {
		if list[i].State == fanfare.Delivered.String() {
			refs = append(refs, fanfare.DeliveryRef{Day: day, Manifest: m.ID, Position: from + uint32(i)})
			of = append(of, &list[i])
		}
	}
	if len(refs) == 0 {
		return nil
	}
	messages, err := t.Inboxes.InboxMessages(ctx, refs)
	if err != nil {
		return err
	}
	for i, message := range messages {
		if message != nil {
			d := of[i]
			d.ReadAt, d.RemovedAt, d.RecalledAt, d.ExpiredAt = message.ReadAt, message.RemovedAt, message.RecalledAt, message.ExpiredAt
		}
	}
	return nil
}

// inboxCounts adds the counts of messages in mailboxes to broadcasts.
func (t *Traces) inboxCounts(ctx context.Context, list []fanfare.Broadcast) error {
	if t.Inboxes == nil || len(list) == 0 {
		return nil
	}
	refs := make([]fanfare.EventRef, len(list))
	for i := range list {
		refs[i], _ = fanfare.ParseEventRef(list[i].Event) // the server wrote it
	}
	counts, err := t.Inboxes.InboxBroadcasts(ctx, refs)
	if err != nil {
		return err
	}
	for i := range list {
		if c := fanfare.InboxCounts(counts[i]); c != (fanfare.InboxCounts{}) {
			list[i].Inbox = &c
		}
	}
	return nil
}
