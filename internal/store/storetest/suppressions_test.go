package storetest_test

import (
	"reflect"
	"testing"

	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/store/control"
)

func TestASuppressionIsReadByItsKey(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		kept := []suppression.Record{
			{Service: 2, Kind: 1, Hash: suppression.Hash{1}, Reason: "hard_bounce", At: 9, Until: 1e18, Source: "smtp 192.0.2.1", Address: "ada@example.org", Tag: 1<<63 | 5},
			{Service: 0, Kind: 2, Hash: suppression.Hash{2}, Reason: "erased", At: 10},
		}
		if err := c.Commit(&control.Batch{Suppressions: kept}); err != nil {
			t.Fatal(err)
		}
		missing := suppression.Record{Service: 2, Kind: 1, Hash: suppression.Hash{3}}
		asked := []suppression.Record{{Kind: 2, Hash: suppression.Hash{2}}, missing, {Service: 2, Kind: 1, Hash: suppression.Hash{1}}}
		if err := c.SuppressionRecords(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		if want := []suppression.Record{kept[1], missing, kept[0]}; !reflect.DeepEqual(asked, want) {
			t.Errorf("got %+v, want %+v", asked, want)
		}
	})
}
