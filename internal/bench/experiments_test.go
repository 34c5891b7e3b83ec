package bench

import (
	"slices"
	"testing"
)

func TestExperimentsHaveDifferentIDs(t *testing.T) {
	var ids []string
	for _, e := range Experiments() {
		if slices.Contains(ids, e.ID) || e.Shows == "" || e.Run == nil {
			t.Errorf("experiment %q is there twice, or is not whole", e.ID)
		}
		ids = append(ids, e.ID)
	}
	if all, err := choose([]string{"all"}); err != nil || len(all) != len(ids) {
		t.Errorf("all: %d of %d, %v", len(all), len(ids), err)
	}
	if one, err := choose([]string{"n1B"}); err != nil || one[0].ID != "N1b" {
		t.Errorf("got %+v, %v", one, err)
	}
	if _, err := choose([]string{"N99"}); err == nil {
		t.Error("N99 was found")
	}
}
