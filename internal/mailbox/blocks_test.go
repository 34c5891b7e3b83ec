package mailbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
)

// personal returns a message of an event of 4 KB for each of n accounts, which differ in a few values, in ascending order.
func personal(event fanfare.EventRef, n int) []mailbox.Deposit {
	text := strings.Repeat("A text that is the same for all people.\r\n", 100)
	list := make([]mailbox.Deposit, n)
	for i := range list {
		list[i] = mailbox.Deposit{Owner: owner(i + 1), Content: mail("news", fmt.Sprintf("Hello person %d,\r\n%shttps://example.org/unsubscribe/%x", i+1, text, i*7919), fmt.Sprintf("Message-ID: <%d-%d@x>", event.Seq, i)),
			Delivery: fanfare.DeliveryRef{Day: event.Day, Manifest: fanfare.NewManifestID(event.Seq, 0), Position: uint32(i)}}
	}
	return list
}

func (w *world) depositAll(t testing.TB, list []mailbox.Deposit) {
	t.Helper()
	for i, err := range w.DepositAll(t.Context(), list) {
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}

func TestABlockIsReadLikeRows(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		ctx := t.Context()
		const people = 150
		first, second := personal(lunch, people), personal(fanfare.EventRef{Day: lunch.Day, Seq: 6}, people)
		w.depositAll(t, first)
		w.clock.advance(time.Minute)
		w.depositAll(t, second)
		if n := w.rows(t, "inbox_blocks"); n != 2 {
			t.Fatalf("%d blocks are stored", n)
		}
		if n := w.rows(t, "accounts") + w.rows(t, "messages"); n != 0 {
			t.Errorf("%d rows exist before the first access", n)
		}
		m, err := w.InboxMessage(ctx, first[7].Delivery)
		if must(t, err); m == nil || m.Account != 8 || !m.StoredAt.Equal(noon) {
			t.Errorf("the delivery is %+v", m)
		}
		w.clock.advance(time.Minute)
		for _, n := range []int{1, 100, people} {
			w.account(t, n)
			for _, err := range w.Deliver(ctx, mailbox.Delivery{Content: mail("later", ""), To: []mailbox.Owner{owner(n)}}) {
				must(t, err)
			}
			inbox := w.inbox(t, n)
			if len(inbox) != 3 || inbox[0].UID != 1 || inbox[2].UID != 3 || inbox[0].ModSeq >= inbox[1].ModSeq || inbox[1].ModSeq >= inbox[2].ModSeq {
				t.Fatalf("account %d has %+v", n, inbox)
			}
			for i, want := range [][]byte{first[n-1].Content, second[n-1].Content} {
				got, err := w.Content(ctx, mailbox.AccountID(n), inbox[i].Email)
				if must(t, err); !bytes.Equal(got, want) {
					t.Errorf("message %d of account %d is %q", i, n, got)
				}
				if inbox[i].Size != int64(len(want)) || !inbox[i].Received.Equal(noon.Add(time.Duration(i)*time.Minute)) {
					t.Errorf("message %d of account %d: %+v", i, n, inbox[i])
				}
				if tree, err := w.Structure(ctx, mailbox.AccountID(n), inbox[i].Email); err != nil || tree.Envelope.Subject != "news" {
					t.Errorf("message %d of account %d has the structure %+v, %v", i, n, tree, err)
				}
			}
			w.see(t, n, mailbox.AddFlags)
			checkCounts(t, w.full(t, mailbox.AccountID(n)))
		}
		if b := w.broadcast(t, lunch); b != (mailbox.InboxBroadcast{Stored: people, Read: 3}) {
			t.Errorf("counts %+v", b)
		}
		a, err := w.Account(ctx, 100)
		if must(t, err); a.Quota.Messages != 1 {
			t.Errorf("the quota counts %d messages", a.Quota.Messages)
		}
		_, copies, err := w.Copy(ctx, 100, []mailbox.EmailID{w.inbox(t, 100)[0].Email}, 4)
		must(t, err)
		_, _, err = w.Expunge(ctx, 100, []mailbox.EmailID{w.inbox(t, 100)[0].Email})
		must(t, err)
		w.clock.advance(2 * time.Hour)
		must(t, w.RemoveUnused(ctx))
		if got, err := w.Content(ctx, 100, copies[0].Email); err != nil || !bytes.Equal(got, first[99].Content) {
			t.Errorf("the copy is %q, %v", got, err)
		}
	})
}

func TestAWatcherLearnsOfAMessageInABlock(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id := w.account(t, 5)
		states := make(chan mailbox.ModSeq, 10)
		defer w.Watch(id, func(state mailbox.ModSeq) { states <- state })()
		w.depositAll(t, personal(lunch, 100))
		state := <-states
		if inbox := w.inbox(t, 5); len(inbox) != 1 || inbox[0].ModSeq != state {
			t.Errorf("state %d, inbox %+v", state, inbox)
		}
	})
}

func TestABlockStoresEachDeliveryOnce(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		list := personal(lunch, 160)
		w.deposit(t, list[:3])        // as rows
		w.depositAll(t, list[:80])    // 3 are rows already
		w.depositAll(t, list[:80])    // as after a crash
		w.depositAll(t, list[60:160]) // a batch that was cut in another way
		w.deposit(t, list[78:80])     // a retry of single messages
		w.account(t, 1)
		for n := 1; n <= 160; n++ {
			w.account(t, n)
			if inbox := w.inbox(t, n); len(inbox) != 1 {
				t.Errorf("account %d has %d messages", n, len(inbox))
			}
		}
		if b := w.broadcast(t, lunch); b.Stored != 160 {
			t.Errorf("counts %+v", b)
		}
		w.clock.advance(time.Hour)
		must(t, w.RemoveUnused(t.Context()))
	})
}

func TestARecallRemovesBlocks(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		const people = 200
		list := personal(lunch, people)
		w.depositAll(t, list)
		for _, n := range []int{1, 2, 3} {
			w.account(t, n)
			w.inbox(t, n)
		}
		w.see(t, 1, mailbox.AddFlags)
		must(t, w.Recall(t.Context(), lunch))
		must(t, w.EndBroadcasts(t.Context()))
		for n, want := range map[int]int{1: 1, 2: 0, 100: 0} {
			w.account(t, n)
			if got := len(w.inbox(t, n)); got != want {
				t.Errorf("account %d has %d messages, want %d", n, got, want)
			}
		}
		if b := w.broadcast(t, lunch); b.Recalled != people-1 || b.Read != 1 || b.Stored != people {
			t.Errorf("counts %+v", b)
		}
		for _, err := range w.DepositAll(t.Context(), personal(lunch, people+64)[people:]) {
			if !errors.Is(err, mailbox.ErrEnded) {
				t.Errorf("a message after the recall: %v", err)
			}
		}
		if n := w.rows(t, "inbox_blocks") + w.rows(t, "inbox_block_data"); n != 0 {
			t.Errorf("%d rows of blocks remain", n)
		}
	})
}

func TestARemovedAccountLeavesNothingInBlocks(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		ctx := t.Context()
		list := personal(lunch, 100)
		w.depositAll(t, list)
		w.account(t, 1)
		w.inbox(t, 1) // is a row, and was the first message of the block
		must(t, w.Remove(ctx, 1))
		must(t, w.Remove(ctx, 50)) // has no account
		w.account(t, 2)
		got, err := w.Content(ctx, 2, w.inbox(t, 2)[0].Email)
		if must(t, err); !bytes.Equal(got, list[1].Content) {
			t.Errorf("the next message is %q", got)
		}
		for _, n := range []int{1, 50} {
			w.account(t, n)
			if inbox := w.inbox(t, n); len(inbox) != 0 {
				t.Errorf("the new account %d has %d messages", n, len(inbox))
			}
			if m, err := w.InboxMessage(ctx, list[n-1].Delivery); err != nil || m != nil {
				t.Errorf("the erased delivery is %+v, %v", m, err)
			}
		}
	})
}

func TestBlocksWhoseMessagesAreRowsAreRemoved(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		list := personal(lunch, 64)
		w.depositAll(t, list)
		for n := 1; n <= 64; n++ {
			w.account(t, n)
			w.inbox(t, n)
		}
		must(t, w.RemoveMerged(t.Context()))
		if n := w.rows(t, "inbox_blocks") + w.rows(t, "inbox_block_data"); n != 0 {
			t.Errorf("%d rows of blocks remain", n)
		}
		w.clock.advance(2 * time.Hour)
		must(t, w.RemoveUnused(t.Context()))
		got, err := w.Content(t.Context(), 9, w.inbox(t, 9)[0].Email)
		if must(t, err); !bytes.Equal(got, list[8].Content) {
			t.Errorf("the message is %q", got)
		}
		w.deposit(t, list[:1]) // as after a crash: the outcome is lost, and the block is gone
		if n := len(w.inbox(t, 1)); n != 1 {
			t.Errorf("account 1 has %d messages", n)
		}
	})
}

func TestADisabledAccountRefusesBlocksAsItRefusesRows(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		ctx := t.Context()
		const people = 100
		list := personal(lunch, people)
		w.depositAll(t, list[:70]) // before the accounts are disabled
		for _, n := range []int{1, 80, people, people + 1} {
			w.account(t, n)
			must(t, w.SetDisabled(ctx, mailbox.AccountID(n), true))
		}
		want := w.Deposit(ctx, list[79:80])[0]
		if fanfare.CodeOf(want) != fanfare.Forbidden {
			t.Fatalf("a row for a disabled account: %v", want)
		}
		for i, err := range w.DepositAll(ctx, list) {
			if n := i + 1; n != 80 && n != people {
				must(t, err) // the message of account 1 is stored since before
			} else if err == nil || err.Error() != want.Error() || fanfare.CodeOf(err) != fanfare.Forbidden {
				t.Errorf("account %d: %v, want %v", n, err, want)
			}
		}
		if b := w.broadcast(t, lunch); b.Stored != people-2 {
			t.Errorf("counts %+v", b)
		}
		for n, want := range map[int]int{1: 1, 79: 1, 80: 0, people: 0} {
			w.account(t, n)
			must(t, w.SetDisabled(ctx, mailbox.AccountID(n), false))
			if inbox := w.inbox(t, n); len(inbox) != want {
				t.Errorf("account %d has %d messages, want %d", n, len(inbox), want)
			}
		}
		w.depositAll(t, list) // a retry after the accounts were enabled
		if inbox := w.inbox(t, 80); len(inbox) != 1 {
			t.Errorf("the enabled account has %d messages", len(inbox))
		}
		for n := 1; n <= people; n++ {
			w.account(t, n)
			must(t, w.SetDisabled(ctx, mailbox.AccountID(n), true))
		}
		for i, err := range w.DepositAll(ctx, personal(fanfare.EventRef{Day: lunch.Day, Seq: 7}, people)) {
			if fanfare.CodeOf(err) != fanfare.Forbidden {
				t.Errorf("all are disabled, account %d: %v", i+1, err)
			}
		}
		if n := w.rows(t, "inbox_blocks"); n != 3 {
			t.Errorf("there are %d blocks, want 3", n)
		}
	})
}
