package mailbox_test

import (
	"errors"
	"slices"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox"
)

func TestRecordsAreStoredChangedAndRemoved(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id, other := w.account(t, 1), w.account(t, 2)
		account, err := w.Account(t.Context(), id)
		must(t, err)
		first, err := w.AddRecord(t.Context(), id, mailbox.IdentityRecord, false, `{"n":1}`, 2)
		must(t, err)
		second, err := w.AddRecord(t.Context(), id, mailbox.IdentityRecord, false, `{"n":2}`, 2)
		must(t, err)
		if first.ID == second.ID || second.Created <= first.Created || first.Created <= account.State {
			t.Errorf("records %+v and %+v after state %d", first, second, account.State)
		}
		if _, err := w.AddRecord(t.Context(), id, mailbox.IdentityRecord, false, `{}`, 2); !errors.Is(err, mailbox.ErrTooMany) {
			t.Errorf("a third record: %v", err)
		}
		for what, place := range map[string]struct {
			id   mailbox.AccountID
			kind mailbox.RecordKind
		}{"another account": {other, mailbox.IdentityRecord}, "another kind": {id, mailbox.SubmissionRecord}} {
			if _, err := w.Record(t.Context(), place.id, place.kind, first.ID); !errors.Is(err, mailbox.ErrNoRecord) {
				t.Errorf("%s reads the record: %v", what, err)
			}
			if err := w.RemoveRecord(t.Context(), place.id, place.kind, first.ID); !errors.Is(err, mailbox.ErrNoRecord) {
				t.Errorf("%s removes the record: %v", what, err)
			}
		}
		changed, err := w.EditRecord(t.Context(), id, mailbox.IdentityRecord, first.ID, func(r *mailbox.Record) error { r.Body = `{"n":3}`; return nil })
		must(t, err)
		if changed.Changed <= second.Changed || changed.Created != first.Created {
			t.Errorf("the change is %+v", changed)
		}
		no := errors.New("no")
		if _, err := w.EditRecord(t.Context(), id, mailbox.IdentityRecord, first.ID, func(r *mailbox.Record) error { r.Body = "lost"; return no }); !errors.Is(err, no) {
			t.Errorf("an edit that fails: %v", err)
		}
		must(t, w.RemoveRecord(t.Context(), id, mailbox.IdentityRecord, second.ID))
		if err := w.RemoveRecord(t.Context(), id, mailbox.IdentityRecord, second.ID); !errors.Is(err, mailbox.ErrNoRecord) {
			t.Errorf("a second removal: %v", err)
		}
		list, state, err := w.Records(t.Context(), id, mailbox.IdentityRecord)
		must(t, err)
		if !slices.Equal(list, []mailbox.Record{changed}) || state <= changed.Changed {
			t.Errorf("there are %+v in state %d", list, state)
		}
		list, _, err = w.RecordChanges(t.Context(), id, mailbox.IdentityRecord, second.Changed)
		must(t, err)
		if len(list) != 2 || list[0].Body != `{"n":3}` || !list[1].Removed || list[1].Body != "" {
			t.Errorf("the changes are %+v", list)
		}
		if list, _, err := w.RecordChanges(t.Context(), id, mailbox.IdentityRecord, state); err != nil || len(list) != 0 {
			t.Errorf("nothing has changed: %+v, %v", list, err)
		}
		if _, _, err := w.RecordChanges(t.Context(), id, mailbox.IdentityRecord, state+1); !errors.Is(err, mailbox.ErrOldModSeq) {
			t.Errorf("a state of the future: %v", err)
		}
		must(t, w.Remove(t.Context(), id))
		if _, err := w.Record(t.Context(), id, mailbox.IdentityRecord, first.ID); !errors.Is(err, mailbox.ErrNoRecord) {
			t.Errorf("the record of a removed account: %v", err)
		}
	})
}

func TestRecordsWithWorkAreFoundInOrder(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		var want []mailbox.RecordPlace
		for n := 1; n <= 3; n++ {
			id := w.account(t, n)
			before, err := w.Account(t.Context(), id)
			must(t, err)
			for i := range 2 {
				r, err := w.AddRecord(t.Context(), id, mailbox.SubscriptionRecord, i == 0, "{}", 0)
				must(t, err)
				if r.Work {
					want = append(want, mailbox.RecordPlace{Account: id, ID: r.ID})
				}
			}
			after, err := w.Account(t.Context(), id)
			must(t, err)
			if after.State != before.State {
				t.Errorf("push subscriptions change the state of the account from %d to %d", before.State, after.State)
			}
		}
		var got []mailbox.RecordPlace
		var last mailbox.RecordPlace
		for {
			list, err := w.RecordsWithWork(t.Context(), mailbox.SubscriptionRecord, last, 2)
			must(t, err)
			if len(list) == 0 {
				break
			}
			got = append(got, list...)
			last = list[len(list)-1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		_, err := w.EditRecord(t.Context(), want[1].Account, mailbox.SubscriptionRecord, want[1].ID, func(r *mailbox.Record) error { r.Work = false; return nil })
		must(t, err)
		must(t, w.RemoveRecord(t.Context(), want[0].Account, mailbox.SubscriptionRecord, want[0].ID))
		if list, err := w.RecordsWithWork(t.Context(), mailbox.SubscriptionRecord, mailbox.RecordPlace{}, 9); err != nil || !slices.Equal(list, want[2:]) {
			t.Errorf("got %v, %v", list, err)
		}
	})
}
