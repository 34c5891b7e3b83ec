package storetest_test

import (
	"reflect"
	"testing"

	"fanfare.dev/fanfare/internal/store/control"
)

func TestWhatIsKeptOfASuppressionIsReadByItsKey(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		kept := []control.SuppressionRecord{
			{Service: 2, Kind: 1, Hash: control.SuppressionHash{1}, Reason: "hard_bounce", At: 9, Until: 1e18, Source: "smtp 192.0.2.1", Address: "ada@example.org", Tag: 1<<63 | 5},
			{Service: 0, Kind: 2, Hash: control.SuppressionHash{2}, Reason: "erased", At: 10},
		}
		if err := c.Commit(&control.Batch{Suppressions: kept}); err != nil {
			t.Fatal(err)
		}
		missing := control.SuppressionRecord{Service: 2, Kind: 1, Hash: control.SuppressionHash{3}}
		asked := []control.SuppressionRecord{{Kind: 2, Hash: control.SuppressionHash{2}}, missing, {Service: 2, Kind: 1, Hash: control.SuppressionHash{1}}}
		if err := c.SuppressionRecords(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		if want := []control.SuppressionRecord{kept[1], missing, kept[0]}; !reflect.DeepEqual(asked, want) {
			t.Errorf("got %+v, want %+v", asked, want)
		}
	})
}
