package mailbox_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store"
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

func TestRecordsAreReadByNumberAndUpToACount(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		var all []mailbox.Record
		for i := range 5 {
			r, err := w.AddRecord(t.Context(), id, mailbox.SubmissionRecord, false, fmt.Sprintf(`{"n":%d}`, i), 0)
			must(t, err)
			all = append(all, r)
		}
		must(t, w.RemoveRecord(t.Context(), id, mailbox.SubmissionRecord, all[2].ID))
		list, state, err := w.RecordsByID(t.Context(), id, mailbox.SubmissionRecord, []mailbox.RecordID{all[1].ID, all[2].ID, all[4].ID, 999})
		must(t, err)
		if !slices.Equal(list, []mailbox.Record{all[1], all[4]}) || state <= all[4].Changed {
			t.Errorf("the named ones are %+v in state %d", list, state)
		}
		list, _, err = w.RecordsByID(t.Context(), id, mailbox.SubmissionRecord, nil)
		if err != nil || len(list) != 0 {
			t.Errorf("no name: %+v, %v", list, err)
		}
		odd := func(r *mailbox.Record) bool { return r.Body != `{"n":1}` }
		list, _, err = w.SomeRecords(t.Context(), id, mailbox.SubmissionRecord, 2, odd)
		must(t, err)
		if !slices.Equal(list, []mailbox.Record{all[0], all[3]}) {
			t.Errorf("the first two that are wanted are %+v", list)
		}
	})
}

func TestOldSubmissionsAreRemovedAsChanges(t *testing.T) {
	const month = 30 * 24 * time.Hour
	onStore(t, mailbox.Options{Submissions: month}, func(t *testing.T, w *world) {
		ids := []mailbox.AccountID{w.account(t, 1), w.account(t, 2)}
		add := func(id mailbox.AccountID, kind mailbox.RecordKind, work bool) mailbox.RecordID {
			r, err := w.AddRecord(t.Context(), id, kind, work, `{"n":1}`, 0)
			must(t, err)
			return r.ID
		}
		left := func(id mailbox.AccountID, kind mailbox.RecordKind) (list []mailbox.RecordID) {
			all, _, err := w.Records(t.Context(), id, kind)
			must(t, err)
			for _, r := range all {
				list = append(list, r.ID)
			}
			return list
		}
		same := func(what string, got []mailbox.RecordID, want ...mailbox.RecordID) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		var old []mailbox.RecordID
		for range 300 { // more than one transaction removes
			old = append(old, add(ids[0], mailbox.SubmissionRecord, false))
		}
		other, working := add(ids[1], mailbox.SubmissionRecord, false), add(ids[0], mailbox.SubmissionRecord, true)
		identity := add(ids[0], mailbox.IdentityRecord, false)
		w.clock.advance(month - time.Minute)
		young := add(ids[0], mailbox.SubmissionRecord, false)
		must(t, w.RemoveOldSubmissions(t.Context()))
		same("before their time", left(ids[0], mailbox.SubmissionRecord), append(slices.Clone(old), working, young)...)
		before, err := w.Account(t.Context(), ids[0])
		must(t, err)
		var mu sync.Mutex
		var seen mailbox.ModSeq
		stop := w.Watch(ids[0], func(m mailbox.ModSeq) { mu.Lock(); defer mu.Unlock(); seen = max(seen, m) })
		defer stop()
		w.clock.advance(2 * time.Minute)
		must(t, w.RemoveOldSubmissions(t.Context()))
		same("the first account", left(ids[0], mailbox.SubmissionRecord), working, young)
		same("the second account", left(ids[1], mailbox.SubmissionRecord))
		same("identities", left(ids[0], mailbox.IdentityRecord), identity)
		if _, err := w.Record(t.Context(), ids[1], mailbox.SubmissionRecord, other); !errors.Is(err, mailbox.ErrNoRecord) {
			t.Errorf("the record of the second account: %v", err)
		}
		changes, state, err := w.RecordChanges(t.Context(), ids[0], mailbox.SubmissionRecord, before.State)
		must(t, err)
		var gone []mailbox.RecordID
		for _, r := range changes {
			if r.Removed && r.Body == "" {
				gone = append(gone, r.ID)
			}
		}
		same("the changes", gone, old...)
		mu.Lock()
		if seen != state {
			t.Errorf("watchers know state %d, want %d", seen, state)
		}
		mu.Unlock()
		must(t, w.RemoveOldSubmissions(t.Context()))
		if after, err := w.Account(t.Context(), ids[0]); err != nil || after.State != state {
			t.Errorf("a removal without old records changes the state from %d to %d, %v", state, after.State, err)
		}
		_, err = w.EditRecord(t.Context(), ids[0], mailbox.SubmissionRecord, working, func(r *mailbox.Record) error { r.Work = false; return nil })
		must(t, err)
		must(t, w.RemoveOldSubmissions(t.Context()))
		same("the one that had work", left(ids[0], mailbox.SubmissionRecord), young)
	})
}

func TestRecordsOfAnEarlierVersionGetATime(t *testing.T) {
	onStore(t, mailbox.Options{Submissions: time.Hour}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		must(t, w.db.Mailboxes().Write(t.Context(), func(session store.Session) error {
			return session.Run("record_put", int64(id), int64(mailbox.SubmissionRecord), int64(7), int64(1), int64(1), int64(0), int64(0), "{}")
		}))
		must(t, w.RemoveOldSubmissions(t.Context()))
		if _, err := w.Record(t.Context(), id, mailbox.SubmissionRecord, 7); err != nil {
			t.Errorf("it is removed at once: %v", err)
		}
		w.clock.advance(time.Hour)
		must(t, w.RemoveOldSubmissions(t.Context()))
		if _, err := w.Record(t.Context(), id, mailbox.SubmissionRecord, 7); !errors.Is(err, mailbox.ErrNoRecord) {
			t.Errorf("it is not removed an hour later: %v", err)
		}
	})
}

func TestTheLogForgetsTheOldestRemovalsOfRecords(t *testing.T) {
	onStore(t, mailbox.Options{Submissions: time.Hour}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		must(t, w.db.Mailboxes().Write(t.Context(), func(session store.Session) error { // as many removals as are kept, and one
			for i := range 10_001 {
				if err := session.Run("record_put", int64(id), int64(mailbox.SubmissionRecord), int64(i+1), int64(1), int64(1), int64(1), int64(1), ""); err != nil {
					return err
				}
			}
			return nil
		}))
		_, err := w.AddRecord(t.Context(), id, mailbox.SubmissionRecord, false, "{}", 0)
		must(t, err)
		w.clock.advance(time.Hour)
		must(t, w.RemoveOldSubmissions(t.Context()))
		if n := w.rows(t, "mailbox_records"); n != 1 {
			t.Errorf("there are %d records, want the newest removal", n)
		}
		if _, _, err := w.RecordChanges(t.Context(), id, mailbox.SubmissionRecord, 0); !errors.Is(err, mailbox.ErrOldModSeq) {
			t.Errorf("the changes since a forgotten removal: %v", err)
		}
	})
}

func TestADisabledAccountGetsNoSubmission(t *testing.T) {
	onStore(t, mailbox.Options{}, func(t *testing.T, w *world) {
		id := w.account(t, 1)
		one, err := w.AddRecord(t.Context(), id, mailbox.SubmissionRecord, true, "{}", 0)
		must(t, err)
		_, err = w.AddRecord(t.Context(), id, mailbox.SubmissionRecord, false, "{}", 0)
		must(t, err)
		must(t, w.SetDisabled(t.Context(), id, true))
		if _, err := w.AddRecord(t.Context(), id, mailbox.SubmissionRecord, true, "{}", 0); fanfare.CodeOf(err) != fanfare.Forbidden {
			t.Errorf("a submission: %v", err)
		}
		_, err = w.AddRecord(t.Context(), id, mailbox.IdentityRecord, false, "{}", 0)
		must(t, err)
		if list, err := w.WorkOf(t.Context(), id, mailbox.SubmissionRecord); err != nil || !slices.Equal(list, []mailbox.Record{one}) {
			t.Errorf("the records with work are %+v, %v", list, err)
		}
		if list, err := w.WorkOf(t.Context(), 99, mailbox.SubmissionRecord); err != nil || len(list) != 0 {
			t.Errorf("an account that does not exist: %+v, %v", list, err)
		}
	})
}
