package httpapi

import (
	"encoding/json"
	"testing"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func TestAPageOfStatesEndsWhereItsDataAreMany(t *testing.T) {
	large := wire.KeyState{Data: make(json.RawMessage, maxStateBytes/2)}
	for _, c := range []struct {
		list  []wire.KeyState
		limit int
		want  int
	}{
		{nil, 2, 0},
		{make([]wire.KeyState, 2), 2, 2},
		{make([]wire.KeyState, 3), 2, 2},
		{[]wire.KeyState{large, large, large}, 3, 2},
		{[]wire.KeyState{{Data: make(json.RawMessage, 2*maxStateBytes)}, large}, 2, 1}, // one at least
	} {
		if got := pageOfStates(c.list, c.limit); got != c.want {
			t.Errorf("%d of %d, at most %d, want %d", got, len(c.list), c.limit, c.want)
		}
	}
}
