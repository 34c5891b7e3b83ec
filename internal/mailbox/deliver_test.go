package mailbox_test

import (
	"errors"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox"
)

func TestADeliveryToExistingAccountsCreatesNone(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		known := w.account(t, 1)
		content := mail("hello", "body")
		for range 2 { // the content is stored once
			errs := w.Deliver(t.Context(), mailbox.Delivery{Content: content, To: []mailbox.Owner{owner(2), owner(1)}, Existing: true})
			if len(errs) != 2 || !errors.Is(errs[0], mailbox.ErrNoAccount) || errs[1] != nil {
				t.Fatalf("the errors are %v", errs)
			}
		}
		if errs := w.Deliver(t.Context(), mailbox.Delivery{Content: mail("nobody", ""), To: []mailbox.Owner{owner(3)}, Existing: true}); !errors.Is(errs[0], mailbox.ErrNoAccount) {
			t.Errorf("without any account: %v", errs)
		}
		for _, id := range []int{2, 3} {
			if _, err := w.Account(t.Context(), mailbox.AccountID(id)); !errors.Is(err, mailbox.ErrNoAccount) {
				t.Errorf("account %d was created: %v", id, err)
			}
		}
		list, _, err := w.Messages(t.Context(), known, mailbox.InboxID)
		must(t, err)
		if len(list) != 2 {
			t.Fatalf("the account has %d messages", len(list))
		}
		for _, m := range list {
			stored, err := w.Content(t.Context(), known, m.Email)
			must(t, err)
			if string(stored) != string(content) {
				t.Errorf("the message is %q", stored)
			}
		}
		must(t, w.Remove(t.Context(), known))
		if errs := w.Deliver(t.Context(), mailbox.Delivery{Content: content, To: []mailbox.Owner{owner(1)}, Existing: true}); !errors.Is(errs[0], mailbox.ErrNoAccount) {
			t.Errorf("to a removed account: %v", errs)
		}
	})
}
