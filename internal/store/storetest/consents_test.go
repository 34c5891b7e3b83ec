package storetest_test

import (
	"fmt"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/control"
)

// A consent is added to the earlier ones, and only the erasure of the person removes them.
func TestConsentsStayUntilThePersonIsErased(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		const ada, bob, eve = fanfare.RowID(1), fanfare.RowID(2), fanfare.RowID(1<<26 + 1)
		commit := func(b *control.Batch) {
			t.Helper()
			if err := c.Commit(b); err != nil {
				t.Fatal(err)
			}
		}
		check := func(of []fanfare.RowID, want ...string) {
			t.Helper()
			var got []string
			err := c.ConsentRecords(t.Context(), of, func(r *control.ConsentRecord) error {
				got = append(got, fmt.Sprint(r.Subscription, r.At, " ", string(r.Body)))
				return nil
			})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("consents of %v are %q, %v; want %q", of, got, err, want)
			}
		}
		commit(&control.Batch{Consents: []control.ConsentRecord{{Subscription: ada, At: 5, Body: []byte(`{"terms":"ü"}`)}, {Subscription: bob, At: 5, Body: []byte(`{}`)}}})
		commit(&control.Batch{Consents: []control.ConsentRecord{{Subscription: ada, At: 4, Body: []byte(`{"terms":"1"}`)}, {Subscription: eve, At: 1<<62 + 1, Body: []byte(`{}`)}}})
		commit(&control.Batch{Consents: []control.ConsentRecord{{Subscription: ada, At: 5, Body: []byte(`{"terms":"ü"}`)}}}) // done again
		check([]fanfare.RowID{eve, ada, 77}, fmt.Sprint(eve, 1<<62+1, " {}"), `1 4 {"terms":"1"}`, `1 5 {"terms":"ü"}`)
		check(nil)
		commit(&control.Batch{DeletedConsents: []fanfare.RowID{ada, 77}})
		check([]fanfare.RowID{ada, bob}, `2 5 {}`)
	})
}
