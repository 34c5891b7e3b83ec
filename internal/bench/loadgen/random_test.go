package loadgen

import (
	"slices"
	"testing"
)

func TestWordsAreDifferentAndByZipf(t *testing.T) {
	seen := map[string]bool{}
	for k := range 100_000 {
		seen[string(AppendWord(nil, k))] = true
	}
	if len(seen) != 100_000 {
		t.Errorf("%d different words", len(seen))
	}
	z := NewZipf(4)
	got := []int{z.Rank(0), z.Rank(0.47), z.Rank(0.49), z.Rank(0.9), z.Rank(0.9999999)}
	if !slices.Equal(got, []int{0, 0, 1, 3, 3}) { // shares 0.48, 0.24, 0.16, 0.12
		t.Errorf("ranks %v", got)
	}
	if d := z.Share(1)*2 - z.Share(0); d > 1e-12 || d < -1e-12 {
		t.Errorf("shares %v and %v", z.Share(0), z.Share(1))
	}
}
