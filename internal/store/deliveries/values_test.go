package deliveries

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPositionsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		positions := rapid.SliceOfDistinct(rapid.Uint32(), rapid.ID).Draw(t, "positions")
		slices.Sort(positions)
		if got := readPositions(appendPositions(nil, positions)); !slices.Equal(got, positions) {
			t.Fatalf("got %v, want %v", got, positions)
		}
	})
}
