package mailbox_test

import (
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store"
)

// spoil flips a bit in the middle of a blob of the first row of a table with the columns (number, blob).
func (w *world) spoil(t *testing.T, table string) {
	t.Helper()
	var number int64
	var blob []byte
	must(t, w.db.Mailboxes().Read(t.Context(), func(in store.Session) error {
		return in.Each("copy_"+table, func(r store.Row) error { number, blob = r.Int64(0), r.Bytes(1); return nil }, int64(0), int64(1))
	}))
	blob[len(blob)/2] ^= 16
	must(t, w.db.Mailboxes().Write(t.Context(), func(in store.Session) error {
		if err := in.Run("clear_" + table); err != nil {
			return err
		}
		return in.Run("fill_"+table, number, blob)
	}))
}

func (w *world) verify(t *testing.T) (verified int, damaged []checksum.Damage) {
	t.Helper()
	must(t, mailbox.Verify(t.Context(), w.db.Mailboxes(), &checksum.Report{
		Verified: func(int) { verified++ }, Without: func() { t.Error("a value has no checksum") }, Damaged: func(d *checksum.Damage) { damaged = append(damaged, *d) },
	}))
	return verified, damaged
}

func TestADamagedMessageIsNotRead(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		m := w.append(t, id, mailbox.InboxID, mail("subject", strings.Repeat("text ", 100)))
		if verified, damaged := w.verify(t); verified != 1 || len(damaged) > 0 {
			t.Fatalf("before the flip, %d are verified, %+v", verified, damaged)
		}
		w.spoil(t, "content_data")
		if data, err := w.Content(t.Context(), id, m.Email); !checksum.IsDamaged(err) || data != nil || !strings.Contains(err.Error(), "of the account 1 ") {
			t.Errorf("the message is read as %q, %v", data, err)
		}
		if _, damaged := w.verify(t); len(damaged) != 1 || !strings.Contains(damaged[0].Subject, "of the account 1") || damaged[0].Restore == "" {
			t.Errorf("after the flip: %+v", damaged)
		}
	})
}

func TestADamagedBlockOfInboxMessagesIsNotRead(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		w.depositAll(t, personal(lunch, 150))
		if n := w.rows(t, "inbox_block_data"); n != 1 {
			t.Fatalf("%d blocks are stored", n)
		}
		verified, damaged := w.verify(t)
		if verified != 2 || len(damaged) > 0 {
			t.Fatalf("before the flip, %d are verified, %+v", verified, damaged)
		}
		w.spoil(t, "inbox_block_data")
		if _, damaged := w.verify(t); len(damaged) != 1 || !strings.Contains(damaged[0].Subject, "block") {
			t.Errorf("after the flip: %+v", damaged)
		}
		w.clock.advance(time.Minute)
		if _, err := w.Create(t.Context(), owner(7)); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("the mailbox is opened: %v", err)
		}
	})
}
