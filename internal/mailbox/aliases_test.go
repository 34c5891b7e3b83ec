package mailbox_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
)

// recipients returns the numbers of the accounts that receive mail to an address.
func (w *world) recipients(t testing.TB, address string) string {
	t.Helper()
	list, err := w.RecipientsOf(t.Context(), func(string) bool { return true }, address)
	must(t, err)
	ids := []mailbox.AccountID{}
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return fmt.Sprint(ids)
}

func (w *world) alias(t testing.TB, id mailbox.AccountID, address string, added bool, others ...string) {
	t.Helper()
	made, now, err := w.AddAlias(t.Context(), id, address, others...)
	if err != nil || now != added || made.Address != address || !made.CreatedAt.Equal(noon) {
		t.Errorf("alias %s of account %d: %+v, %v, %v", address, id, made, now, err)
	}
}

// stateOf returns the state of an account.
func (w *world) stateOf(t testing.TB, id mailbox.AccountID) mailbox.ModSeq {
	t.Helper()
	a, err := w.Account(t.Context(), id)
	must(t, err)
	return a.State
}

func isCode(t testing.TB, what string, err error, code fanfare.Code) {
	t.Helper()
	if fanfare.CodeOf(err) != code {
		t.Errorf("%s: %v, want %v", what, err, code)
	}
}

func TestAnAliasBelongsToOneAccount(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		one, two := w.account(t, 1), w.account(t, 2)
		shop, err := w.Create(t.Context(), mailbox.Owner{ID: 3, Service: "shop", Address: "person3@example.org"})
		must(t, err)
		state := w.stateOf(t, one)
		w.alias(t, one, "sales@example.org", true)
		w.alias(t, one, "sales@example.org", false)
		w.alias(t, one, "info@example.org", true)
		if after := w.stateOf(t, one); after != state+2 {
			t.Errorf("the state changed from %d to %d, want one change for each alias", state, after)
		}
		_, _, err = w.AddAlias(t.Context(), two, "sales@example.org")
		isCode(t, "the alias of another account", err, fanfare.Conflict)
		_, _, err = w.AddAlias(t.Context(), two, "person1@example.org")
		isCode(t, "the address of another account", err, fanfare.Conflict)
		_, _, err = w.AddAlias(t.Context(), two, "person1@other.example.org", "person1@example.org")
		isCode(t, "another form of the address of another account", err, fanfare.Conflict)
		_, _, err = w.AddAlias(t.Context(), two, "person2@example.org")
		isCode(t, "its own address", err, fanfare.Conflict)
		_, _, err = w.AddAlias(t.Context(), 99, "x@example.org")
		if !errors.Is(err, mailbox.ErrNoAccount) {
			t.Errorf("an account that does not exist: %v", err)
		}
		w.alias(t, shop.ID, "sales@example.org", true) // in another service
		for address, want := range map[string]string{"sales@example.org": "[1 3]", "info@example.org": "[1]", "person1@example.org": "[1]", "Sales@example.org": "[]", "sales+x@example.org": "[]"} {
			if got := w.recipients(t, address); got != want {
				t.Errorf("mail to %s goes to %s, want %s", address, got, want)
			}
		}
		list, err := w.Addresses(t.Context(), one)
		if err != nil || !slices.Equal(list, []string{"person1@example.org", "info@example.org", "sales@example.org"}) {
			t.Errorf("the addresses are %q, %v", list, err)
		}
		if _, err = w.Addresses(t.Context(), 99); !errors.Is(err, mailbox.ErrNoAccount) {
			t.Errorf("the addresses of an account that does not exist: %v", err)
		}

		isCode(t, "remove the alias of another account", w.RemoveAlias(t.Context(), two, "sales@example.org"), fanfare.NotFound)
		must(t, w.RemoveAlias(t.Context(), one, "sales@example.org"))
		isCode(t, "remove it again", w.RemoveAlias(t.Context(), one, "sales@example.org"), fanfare.NotFound)
		if got := w.recipients(t, "sales@example.org"); got != "[3]" {
			t.Errorf("without the alias, mail goes to %s", got)
		}
		must(t, w.Remove(t.Context(), one))
		if got := w.recipients(t, "info@example.org"); got != "[]" {
			t.Errorf("after the account was removed, mail to its alias goes to %s", got)
		}
		w.alias(t, two, "info@example.org", true)
	})
}

func TestAnAccountCannotTakeTheAliasOfAnother(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		one := w.account(t, 1)
		w.alias(t, one, "person2@example.org", true)
		_, err := w.Create(t.Context(), owner(2))
		isCode(t, "create an account with the alias of another", err, fanfare.Conflict)
		if _, err := w.Account(t.Context(), 2); !errors.Is(err, mailbox.ErrNoAccount) {
			t.Errorf("the account that was refused: %v", err)
		}
		// A channel stores messages for the subscriber. Mail from others still goes to the alias.
		errs := w.Deliver(t.Context(), mailbox.Delivery{Content: mail("news", "x"), Received: noon, To: []mailbox.Owner{owner(2)}})
		must(t, errs[0])
		if got := w.recipients(t, "person2@example.org"); got != "[1]" {
			t.Errorf("mail to the alias goes to %s", got)
		}
		must(t, w.RemoveAlias(t.Context(), one, "person2@example.org"))
		if got := w.recipients(t, "person2@example.org"); got != "[2]" {
			t.Errorf("without the alias, mail goes to %s", got)
		}
		_, err = w.Create(t.Context(), mailbox.Owner{ID: 5, Service: "shop", Address: "person2@example.org"})
		must(t, err)
	})
}
