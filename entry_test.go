package fanfare

import (
	"fmt"
	"testing"
)

func TestNewRecipientRangeListsPositionsOnlyWithGaps(t *testing.T) {
	for _, test := range []struct {
		positions []uint32
		want      RecipientRange
	}{
		{[]uint32{4}, RecipientRange{From: 4, To: 5}},
		{[]uint32{4, 5, 6}, RecipientRange{From: 4, To: 7}},
		{[]uint32{4, 6}, RecipientRange{Positions: []uint32{4, 6}}},
	} {
		if got := NewRecipientRange(0, 0, test.positions); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%v gives %+v, want %+v", test.positions, got, test.want)
		}
	}
}
