package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
)

var lunch = fanfare.EventRef{Day: fanfare.DayOf(noon), Seq: 5}

// deposits returns a message of an event for each of n accounts.
func deposits(event fanfare.EventRef, n int) []mailbox.Deposit {
	list := make([]mailbox.Deposit, n)
	for i := range list {
		list[i] = mailbox.Deposit{Owner: owner(i + 1), Content: mail("news", fmt.Sprintf("for person %d", i+1)),
			Delivery: fanfare.DeliveryRef{Day: event.Day, Manifest: fanfare.NewManifestID(event.Seq, i%2), Position: uint32(i)}}
	}
	return list
}

func (w *world) deposit(t testing.TB, list []mailbox.Deposit) {
	t.Helper()
	for _, err := range w.Deposit(t.Context(), list) {
		must(t, err)
	}
}

func (w *world) inbox(t testing.TB, n int) []mailbox.Message {
	t.Helper()
	list, _, err := w.Messages(t.Context(), mailbox.AccountID(n), mailbox.InboxID)
	must(t, err)
	return list
}

func (w *world) see(t testing.TB, n int, mode mailbox.FlagMode) {
	t.Helper()
	_, _, err := w.UpdateFlags(t.Context(), mailbox.AccountID(n), []mailbox.FlagChange{{Emails: []mailbox.EmailID{w.inbox(t, n)[0].Email}, Mode: mode, Flags: mailbox.Seen}})
	must(t, err)
}

func (w *world) broadcast(t testing.TB, event fanfare.EventRef) mailbox.InboxBroadcast {
	t.Helper()
	b, err := w.InboxBroadcast(t.Context(), event)
	must(t, err)
	return b
}

func TestADeliveryIsStoredOnce(t *testing.T) {
	onStore(t, mailbox.Options{MaxMessages: 1, MaxBytes: 10}, func(t *testing.T, w *world) {
		list := deposits(lunch, 20)
		w.deposit(t, list)
		w.deposit(t, append(list, list[3])) // as after a crash
		for n := range list {
			inbox := w.inbox(t, n+1)
			if len(inbox) != 1 {
				t.Fatalf("account %d has %d messages", n+1, len(inbox))
			}
			data, err := w.Content(t.Context(), mailbox.AccountID(n+1), inbox[0].Email)
			if must(t, err); string(data) != string(list[n].Content) {
				t.Errorf("account %d has the message %q", n+1, data)
			}
			a, err := w.Account(t.Context(), mailbox.AccountID(n+1))
			if must(t, err); a.Quota.Messages != 0 || a.Quota.Bytes != 0 {
				t.Errorf("messages of the operator count in the quota: %+v", a.Quota)
			}
		}
		if b := w.broadcast(t, lunch); b != (mailbox.InboxBroadcast{Stored: 20}) {
			t.Errorf("counts %+v", b)
		}
		if n := w.rows(t, "contents"); n != 20 {
			t.Errorf("%d contents are stored", n)
		}
	})
}

func TestTheFirstLookSetsTheReadTime(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		list := deposits(lunch, 2)
		w.deposit(t, list)
		w.clock.advance(time.Minute)
		w.see(t, 1, mailbox.AddFlags)
		first := w.clock.Now()
		w.clock.advance(time.Minute)
		w.see(t, 1, mailbox.RemoveFlags)
		w.see(t, 1, mailbox.AddFlags)
		m, err := w.InboxMessage(t.Context(), list[0].Delivery)
		if must(t, err); !m.StoredAt.Equal(noon) || !m.ReadAt.Equal(first) || m.Account != 1 {
			t.Errorf("message %+v, want it read at %s", m, first)
		}
		other, err := w.InboxMessage(t.Context(), list[1].Delivery)
		if must(t, err); !other.ReadAt.IsZero() {
			t.Errorf("the other message was read at %s", other.ReadAt)
		}
		if b := w.broadcast(t, lunch); b.Read != 1 || b.Stored != 2 {
			t.Errorf("counts %+v", b)
		}
		_, _, err = w.Expunge(t.Context(), 1, []mailbox.EmailID{w.inbox(t, 1)[0].Email})
		must(t, err)
		m, err = w.InboxMessage(t.Context(), list[0].Delivery)
		if must(t, err); m.RemovedAt.IsZero() || m.ReadAt.IsZero() || !m.RecalledAt.IsZero() {
			t.Errorf("the removed message %+v", m)
		}
		a, err := w.Account(t.Context(), 1)
		if must(t, err); a.Quota.Messages != 0 || a.Quota.Bytes != 0 {
			t.Errorf("quota after the removal: %+v", a.Quota)
		}
	})
}

func TestSeveralDeliveriesAreReadTogether(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		other := fanfare.EventRef{Day: lunch.Day, Seq: 6}
		list := deposits(lunch, 20)
		w.deposit(t, list)
		w.see(t, 7, mailbox.AddFlags)
		refs := make([]fanfare.DeliveryRef, 0, len(list)+1)
		for i := range list {
			refs = append(refs, list[len(list)-1-i].Delivery)
			if i == 4 {
				refs = append(refs, fanfare.DeliveryRef{Day: lunch.Day, Manifest: 1, Position: 1})
			}
		}
		messages, err := w.InboxMessages(t.Context(), refs)
		must(t, err)
		if len(messages) != len(refs) || messages[5] != nil {
			t.Fatalf("%d messages; that of an unknown delivery is %+v", len(messages), messages[5])
		}
		for i, m := range messages {
			if one, err := w.InboxMessage(t.Context(), refs[i]); err != nil || (one == nil) != (m == nil) || one != nil && *one != *m {
				t.Errorf("delivery %d: %+v, alone %+v, %v", i, m, one, err)
			}
			if m != nil && m.ReadAt.IsZero() == (m.Account == 7) {
				t.Errorf("the message of account %d was read at %s", m.Account, m.ReadAt)
			}
		}
		counts, err := w.InboxBroadcasts(t.Context(), []fanfare.EventRef{other, lunch})
		if must(t, err); len(counts) != 2 || counts[0] != (mailbox.InboxBroadcast{}) || counts[1] != (mailbox.InboxBroadcast{Stored: 20, Read: 1}) {
			t.Errorf("counts %+v", counts)
		}
	})
}

func TestARecallRemovesUnreadMessages(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		const people = 600 // more than a recall removes at once
		other := fanfare.EventRef{Day: lunch.Day, Seq: 6}
		list := deposits(lunch, people)
		w.deposit(t, list)
		w.deposit(t, deposits(other, 2))
		w.see(t, 3, mailbox.AddFlags)
		must(t, w.Recall(t.Context(), lunch))
		if errs := w.Deposit(t.Context(), deposits(lunch, people+1)[people:]); !errors.Is(errs[0], mailbox.ErrEnded) {
			t.Errorf("a message after the recall: %v", errs[0])
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.EndBroadcasts(ctx); err == nil {
			t.Error("an interrupted recall has no error")
		}
		must(t, w.EndBroadcasts(t.Context()))
		for n := 1; n <= people; n++ {
			want := map[bool]int{true: 1, false: 0}[n == 3] + map[bool]int{true: 1, false: 0}[n <= 2]
			if got := len(w.inbox(t, n)); got != want {
				t.Errorf("account %d has %d messages, want %d", n, got, want)
			}
		}
		b := w.broadcast(t, lunch)
		if b.Stored != people || b.Recalled != people-1 || b.Read != 1 || !b.RecalledAt.Equal(noon) {
			t.Errorf("counts %+v", b)
		}
		m, err := w.InboxMessage(t.Context(), list[0].Delivery)
		if must(t, err); !m.RecalledAt.Equal(noon) || !m.RemovedAt.IsZero() {
			t.Errorf("the recalled message %+v", m)
		}
		c, err := w.Changes(t.Context(), 10, 0, 1)
		if must(t, err); len(c.Removed) != 1 || !c.Removed[0].Destroyed {
			t.Errorf("changes of a recalled message: %+v", c)
		}
	})
}

func TestMessagesExpire(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		list := deposits(lunch, 4)
		for i := range list {
			list[i].Keep = time.Hour
		}
		w.deposit(t, list)
		w.see(t, 2, mailbox.AddFlags)
		must(t, w.Recall(t.Context(), lunch))
		must(t, w.EndBroadcasts(t.Context()))
		if n := len(w.inbox(t, 2)); n != 1 {
			t.Fatalf("the recall left %d messages that were read", n)
		}
		w.clock.advance(time.Hour)
		must(t, w.EndBroadcasts(t.Context()))
		if n := len(w.inbox(t, 2)); n != 0 {
			t.Errorf("%d messages are there after their expiry", n)
		}
		if b := w.broadcast(t, lunch); b.Expired != 1 || b.Recalled != 3 {
			t.Errorf("counts %+v", b)
		}
		later := fanfare.EventRef{Day: lunch.Day, Seq: 7}
		w.deposit(t, deposits(later, 1))
		must(t, w.Expire(t.Context(), later, w.clock.Now().Add(time.Minute)))
		must(t, w.EndBroadcasts(t.Context()))
		if n := len(w.inbox(t, 1)); n != 1 {
			t.Errorf("%d messages are there before their expiry", n)
		}
		w.clock.advance(time.Minute)
		must(t, w.EndBroadcasts(t.Context()))
		if n := len(w.inbox(t, 1)); n != 0 {
			t.Errorf("%d messages are there after their expiry", n)
		}
	})
}

func TestAnAccountIsOpenedIfItHasMessages(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		for _, err := range w.DepositAll(t.Context(), deposits(lunch, 200)) {
			must(t, err)
		}
		if _, err := w.Open(t.Context(), owner(900)); !errors.Is(err, mailbox.ErrNoAccount) {
			t.Errorf("an account without messages: %v", err)
		}
		if _, err := w.Account(t.Context(), 900); !errors.Is(err, mailbox.ErrNoAccount) {
			t.Errorf("it was created: %v", err)
		}
		for range 2 {
			a, err := w.Open(t.Context(), owner(7))
			if must(t, err); a.ID != 7 || a.Address != owner(7).Address || len(w.inbox(t, 7)) != 1 {
				t.Errorf("account %+v with %d messages", a, len(w.inbox(t, 7)))
			}
		}
	})
}
