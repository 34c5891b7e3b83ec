package inbox_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/pipeline/deliver/delivertest"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/inbox"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// A moody store refuses messages as its behaviour says, and otherwise stores them in real mailboxes.
type moody struct {
	*mailbox.Store
	mu        sync.Mutex
	behaviour delivertest.Behaviour
}

func (m *moody) set(b delivertest.Behaviour) { m.mu.Lock(); defer m.mu.Unlock(); m.behaviour = b }

func (m *moody) Deposit(ctx context.Context, list []mailbox.Deposit) []error {
	m.mu.Lock()
	behaviour := m.behaviour
	m.mu.Unlock()
	errs := make([]error, len(list))
	switch behaviour {
	case delivertest.RefusesTemporarily:
		for i := range errs {
			errs[i] = &fanfare.Error{Code: fanfare.Unavailable, Message: "the database cannot be reached"}
		}
	case delivertest.RefusesPermanently:
		for i := range errs {
			errs[i] = &fanfare.Error{Code: fanfare.Forbidden, Message: "the account is disabled"}
		}
	default:
		return m.Store.Deposit(ctx, list)
	}
	return errs
}

func open(t *testing.T) *moody {
	t.Helper()
	s := mailbox.New(storetest.OpenAt(t, t.TempDir()), mailbox.Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	return &moody{Store: s, behaviour: delivertest.Accepts}
}

// received returns the contents of all inboxes.
func (m *moody) received(t *testing.T) (all [][]byte) {
	t.Helper()
	accounts, err := m.Accounts(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range accounts {
		list, _, err := m.Messages(t.Context(), a.ID, mailbox.InboxID)
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range list {
			content, err := m.Content(t.Context(), a.ID, message.Email)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, content)
		}
	}
	return all
}

func message(n int, text string) *driver.Message {
	return &driver.Message{Subscriber: fanfare.RowID(n + 1), From: "s@example.com", To: fmt.Sprintf("r%d@example.com", n), Body: []byte("Subject: x\r\n\r\n" + text)}
}

func TestTheDriverKeepsTheContract(t *testing.T) {
	delivertest.Run(t, func(t *testing.T, _ time.Duration) *delivertest.Fixture {
		m := open(t)
		return &delivertest.Fixture{
			Driver: inbox.New(inbox.Config{Service: "acme", Store: m, Clock: clock.System{}}), Relay: inbox.Relay, HasAttachments: true, Idempotent: true, Message: message, SetBehaviour: m.set,
			Behaviours: []delivertest.Behaviour{delivertest.RefusesTemporarily, delivertest.RefusesPermanently},
			OnBody:     func(func([]byte)) {}, // the store gets several bodies at once, and knows a message by its delivery
			Received:   func() [][]byte { return m.received(t) },
		}
	})
}

func TestAMessageWithoutARecordedOutcomeIsStoredOnce(t *testing.T) {
	m := open(t)
	d := inbox.New(inbox.Config{Service: "acme", Store: m, Clock: clock.System{}, Keep: time.Hour})
	one := message(1, "once")
	one.Delivery = fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: 1}
	for range 2 { // as after a crash between both commits
		again := *one
		again.Body = bytes.Clone(one.Body) // the queue overwrites it
		queue := delivertest.NewQueue(&again)
		queue.AnyContent = true
		if err := d.Serve(t.Context(), queue.Connection()); err != nil {
			t.Fatal(err)
		}
		if o := queue.Outcomes()[one.Delivery]; o.Verdict != driver.Accepted || !o.Delivered {
			t.Errorf("outcome %+v", o)
		}
	}
	if all := m.received(t); len(all) != 1 || !bytes.Equal(all[0], one.Body) {
		t.Errorf("the mailbox has %q", all)
	}
	stored, err := m.InboxMessage(t.Context(), one.Delivery)
	if err != nil || stored == nil || stored.Account != one.Subscriber {
		t.Errorf("the delivery is stored as %+v, %v", stored, err)
	}
	b, err := m.InboxBroadcast(t.Context(), fanfare.EventRef{Day: one.Delivery.Day, Seq: one.Delivery.Manifest.Event()})
	if err != nil || b.Stored != 1 || b.ExpiresAt.IsZero() {
		t.Errorf("the broadcast has %+v, %v", b, err)
	}
}

func TestAMessageOfARecalledBroadcastFails(t *testing.T) {
	m := open(t)
	one := message(1, "late")
	one.Delivery = fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: 1}
	if err := m.Recall(t.Context(), fanfare.EventRef{Day: one.Delivery.Day, Seq: one.Delivery.Manifest.Event()}); err != nil {
		t.Fatal(err)
	}
	queue := delivertest.NewQueue(one)
	queue.AnyContent = true
	if err := inbox.New(inbox.Config{Service: "acme", Store: m, Clock: clock.System{}}).Serve(t.Context(), queue.Connection()); err != nil {
		t.Fatal(err)
	}
	if o := queue.Outcomes()[one.Delivery]; o.Verdict != driver.Permanent || o.Delivered {
		t.Errorf("outcome %+v", o)
	}
}

func TestABatchIsStoredInOneStep(t *testing.T) {
	m := open(t)
	d := inbox.New(inbox.Config{Service: "acme", Store: m, Clock: clock.System{}})
	messages := make([]*driver.Message, 100)
	for i := range messages {
		messages[i] = message(i, fmt.Sprintf("for person %d", i))
		messages[i].Attachments = []byte("\r\nattached")
		messages[i].Delivery = fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: uint32(i)}
	}
	for range 2 { // as after a crash
		for i, o := range d.DeliverAll(t.Context(), messages) {
			if o.Verdict != driver.Accepted || !o.Delivered || o.At.IsZero() || o.Relay != inbox.Relay {
				t.Fatalf("outcome %d: %+v", i, o)
			}
		}
	}
	if _, err := m.Create(t.Context(), mailbox.Owner{ID: 8, Service: "acme", Address: messages[7].To}); err != nil {
		t.Fatal(err)
	}
	if all := m.received(t); len(all) != 1 || string(all[0]) != "Subject: x\r\n\r\nfor person 7\r\nattached" {
		t.Errorf("the mailbox has %q", all)
	}
}
