package report

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestTracesShowWhatHappenedInTheMailbox(t *testing.T) {
	ref, none := refOf(0, 5), refOf(0, 6)
	traces, r := newTraces(map[fanfare.EventRef][]int{ref: {3, 2}, none: {1}})
	boxes := mailbox.New(storetest.OpenAt(t, t.TempDir()), mailbox.Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(boxes.Close)
	traces.Inboxes = boxes
	var deposits []mailbox.Deposit
	for i := range r.manifests[ref] {
		m := &r.manifests[ref][i]
		for position := range uint32(m.Members()) {
			delivery := fanfare.DeliveryRef{Day: ref.Day, Manifest: m.ID, Position: position}
			_, member, _ := m.At(position)
			deposits = append(deposits, mailbox.Deposit{Delivery: delivery, Content: []byte("Subject: x\r\n\r\nx"),
				Owner: mailbox.Owner{ID: member.Subscriber + 1, Service: "news", Address: fmt.Sprintf("%d@example.org", member.Subscriber)}})
			r.attempts = append(r.attempts, fanfare.Entry{Delivery: delivery, Attempt: 1, State: fanfare.Delivered, At: noon})
		}
	}
	for _, err := range boxes.Deposit(t.Context(), deposits) {
		if err != nil {
			t.Fatal(err)
		}
	}
	read := deposits[3]
	list, _, err := boxes.Messages(t.Context(), read.ID, mailbox.InboxID)
	if err == nil {
		_, _, err = boxes.UpdateFlags(t.Context(), read.ID, []mailbox.FlagChange{{Emails: []mailbox.EmailID{list[0].Email}, Mode: mailbox.AddFlags, Flags: mailbox.Seen}})
	}
	if err != nil {
		t.Fatal(err)
	}
	gone := deposits[1]
	if list, _, err = boxes.Messages(t.Context(), gone.ID, mailbox.InboxID); err == nil {
		_, _, err = boxes.Expunge(t.Context(), gone.ID, []mailbox.EmailID{list[0].Email})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := boxes.Recall(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if err := boxes.EndBroadcasts(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, _, err := traces.Deliveries(t.Context(), ref, "", 10)
	if err != nil || len(page) != 5 {
		t.Fatalf("%d deliveries, %v", len(page), err)
	}
	for i := range page {
		d := &page[i]
		isRead, isRemoved := d.ID == read.Delivery.String(), d.ID == gone.Delivery.String()
		if d.ReadAt.IsZero() == isRead || d.RemovedAt.IsZero() == isRemoved || d.RecalledAt.IsZero() == (!isRead && !isRemoved) || !d.ExpiredAt.IsZero() {
			t.Errorf("delivery %d: read %s, removed %s, recalled %s, expired %s", i, d.ReadAt, d.RemovedAt, d.RecalledAt, d.ExpiredAt)
		}
	}
	b, err := traces.Broadcast(t.Context(), ref)
	if err != nil || b.Inbox == nil || b.Inbox.Stored != 5 || b.Inbox.Read != 1 || b.Inbox.Recalled != 3 || b.Inbox.RecalledAt.IsZero() || !b.Inbox.ExpiresAt.IsZero() {
		t.Errorf("the broadcast has %+v, %v", b.Inbox, err)
	}
	expiry := time.Now().Add(time.Hour).Truncate(time.Second)
	if err := boxes.Expire(t.Context(), none, expiry); err != nil {
		t.Fatal(err)
	}
	all, err := pageList(traces.Broadcasts(t.Context(), Pick{Limit: 10}))
	if err != nil || len(all) != 2 || all[0].Inbox == nil || !all[0].Inbox.ExpiresAt.Equal(expiry) || all[1].Inbox == nil || all[1].Inbox.Recalled != 3 {
		t.Errorf("the list has %+v, %v", all, err)
	}
	traces.Inboxes = nil
	if page, _, err = traces.Deliveries(t.Context(), ref, "", 10); err != nil || !page[3].ReadAt.IsZero() {
		t.Errorf("without mailboxes: %+v, %v", page, err)
	}
}
