package storetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// Messages are settled while the subscriptions that they are for end: every
// outcome and every end that was answered is there after a restart.
func TestOutcomesAndEndsThatComeAtOnceAreAllKept(t *testing.T) {
	const n = 300
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		people, record := control.New(db), deliveries.New(db)
		f := frozenEvent(5, noon, n)
		day := f.Posted.Ref().Day
		freeze(t, record, f)
		b := &control.Batch{ChangeSeq: 1, At: 1}
		for _, p := range f.Manifests[0].Sections[0].Members.Subscribers() {
			b.Subscribers[0] = append(b.Subscribers[0], control.SubscriberRecord{Place: p, Service: 1, Kind: 1, Address: "p@example.org"})
			b.Subscriptions[0] = append(b.Subscriptions[0], control.SubscriptionRecord{Place: p, Subscriber: p, Topic: 1, Channel: 1})
		}
		if err := people.Commit(b); err != nil {
			t.Fatal(err)
		}
		atOnce(t, func() error {
			for i := range uint32(n) {
				if err := record.Commit(context.Background(), day, &fanfare.Commit{Entries: []fanfare.Entry{entry(f, i, 1, fanfare.Accepted)}}); err != nil {
					return err
				}
			}
			return nil
		}, func() error {
			for i := range uint64(n) {
				ends := &control.SubscriptionRecord{Place: fanfare.NewRowID(0, uint32(i)), Channel: 1, Ended: true, EndedAt: 7, EndedSeq: 2 + i, Reason: "link"}
				if err := people.Commit(&control.Batch{ChangeSeq: 2 + i, SubscriptionUpdates: []*control.SubscriptionRecord{ends}}); err != nil {
					return err
				}
			}
			return nil
		})
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = storetest.OpenAt(t, place)
		settled := 0
		err := deliveries.New(db).Latest(t.Context(), day, f.Manifests[0].ID, 0, n, func(_ uint32, attempt uint16, state fanfare.State) {
			if attempt == 1 && state == fanfare.Accepted {
				settled++
			}
		})
		if err != nil || settled != n {
			t.Errorf("%d outcomes are kept (%v), want %d", settled, err, n)
		}
		ended := uint64(0)
		err = control.New(db).ScanSubscriptions(t.Context(), control.Range{Last: ^fanfare.RowID(0)}, func(r *control.SubscriptionRecord) error {
			if !r.Ended || r.EndedSeq != 2+ended {
				return fmt.Errorf("subscription %d: ended %v by change %d", r.Place, r.Ended, r.EndedSeq)
			}
			ended++
			return nil
		})
		if err != nil || ended != n {
			t.Errorf("%d ends are kept (%v), want %d", ended, err, n)
		}
	})
}

// The files of the database do not contain erased and replaced values after an erasure, and the
// data of other people stays.
func TestErasureRemovesThePersonAndKeepsTheOthers(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		people, record := control.New(db), deliveries.New(db)
		names := [][]byte{[]byte("lovelace")}
		f := frozenEvent(5, noon, 200)
		ref := f.Posted.Ref()
		f.Posted.Event.Data = json.RawMessage(`{"who":"Ada Lovelace"}`)
		freeze(t, record, f)
		commit := &fanfare.Commit{}
		for i := range uint32(200) {
			e := entry(f, i, 1, fanfare.Accepted)
			if i%10 == 0 {
				e.Address, e.Text = "lovelace@example.org", "250 ok, Lovelace"
			}
			commit.Entries = append(commit.Entries, e)
		}
		if err := record.Commit(t.Context(), ref.Day, commit); err != nil {
			t.Fatal(err)
		}
		if err := record.Park(t.Context(), ref.Day, ref.Seq, fanfare.Parked{Kind: "event", At: noon}, []byte("for Lovelace")); err != nil {
			t.Fatal(err)
		}
		p, filter := fanfare.NewRowID(3, 1), control.FilterRecord{Number: 1, Text: "name == 'Lovelace'"}
		b := &control.Batch{ChangeSeq: 1, At: 1, Filters: []control.FilterRecord{filter}, Audit: []audit.Entry{{ID: 1, Operation: audit.Operation{Name: "lovelace"}}}}
		b.Subscribers[3] = []control.SubscriberRecord{
			{Place: p, Service: 1, Kind: 1, Address: "lovelace@example.org", ID: "Lovelace", Attributes: []byte(`{"name":"Lovelace"}`)},
			{Place: p + 1, Service: 1, Kind: 1, Address: "bob@example.org", ID: "bob"}}
		if err := people.Commit(b); err != nil {
			t.Fatal(err)
		}
		if found := storetest.Find(t, place, "lovelace"); len(found) == 0 {
			t.Fatal("the person is not found before it is erased")
		}

		var refs []fanfare.DeliveryRef
		for i := range commit.Entries {
			if e := &commit.Entries[i]; i%10 == 0 {
				refs = append(refs, e.Delivery)
				e.Address, e.Text = "", ""
			}
		}
		if err := record.EraseAttempts(t.Context(), ref.Day, refs); err != nil {
			t.Fatal(err)
		}
		posted := *f.Posted
		posted.Event.Data = json.RawMessage(`{}`)
		if err := record.ReplacePosted(t.Context(), &posted); err != nil {
			t.Fatal(err)
		}
		parked, _, err := record.Parked(t.Context(), ref.Day)
		if err != nil || len(parked) != 1 {
			t.Fatalf("parked are %v (%v)", parked, err)
		}
		if err := record.ReplaceParked(t.Context(), parked[0].ID, []byte("for nobody")); err != nil {
			t.Fatal(err)
		}
		erased := &control.SubscriberRecord{Place: p, Service: 1, Kind: 1}
		if err := people.Commit(&control.Batch{SecureDelete: true, SubscriberUpdates: []*control.SubscriberRecord{erased}, ErasedFilters: []uint32{1}, RenamedAuditEntries: map[int64]string{1: "sbr-1"}}); err != nil {
			t.Fatal(err)
		}
		if err := people.Scrub(names); err != nil {
			t.Fatal(err)
		}
		if err := record.Scrub(t.Context(), ref.Day, names); err != nil {
			t.Fatal(err)
		}
		if found := storetest.Find(t, place, "lovelace"); len(found) > 0 {
			t.Errorf("the person is found: %v", found)
		}
		var left []fanfare.Entry
		err = record.Attempts(t.Context(), ref.Day, f.Manifests[0].ID, 0, 200, func(e *fanfare.Entry) error { left = append(left, *e); return nil })
		if err != nil || !slices.Equal(left, commit.Entries) {
			t.Errorf("of the attempts there are %d (%v), or they are not as they were", len(left), err)
		}
		var owners []string
		err = people.ScanSubscribers(t.Context(), control.Range{Last: ^fanfare.RowID(0)}, func(r *control.SubscriberRecord) error {
			owners = append(owners, r.ID+" "+r.Address)
			return nil
		})
		if want := []string{" ", "bob bob@example.org"}; err != nil || !slices.Equal(owners, want) {
			t.Errorf("the people are %q (%v), want %q", owners, err, want)
		}
	})
}
