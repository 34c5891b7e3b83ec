package pipeline

import (
	"slices"
	"testing"
)

func TestTheBatchDemandsOneMailForEachPersonAndStrongEnoughEvent(t *testing.T) {
	b := earthquakeBatch{magnitudes: []float64{4.9, 5, 6.4}, wishes: []float64{5, 6.4, 6.5}}
	if got := b.mails(); got != 3 {
		t.Errorf("%d mails", got)
	}
	one, err := readQuakes(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := readQuakes(100, 1)
	if err != nil || !slices.Equal(one.wishes, again.wishes) || len(one.magnitudes) != 1707 || one.mails() == 0 {
		t.Errorf("%d events, %d mails, %v", len(one.magnitudes), one.mails(), err)
	}
}
