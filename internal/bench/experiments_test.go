package bench

import (
	"slices"
	"strings"
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
	if all, _, err := choose([]string{"all"}, true); err != nil || len(all) != len(ids) {
		t.Errorf("all: %d of %d, %v", len(all), len(ids), err)
	}
	if one, _, err := choose([]string{"n1B"}, false); err != nil || one[0].ID != "N1b" {
		t.Errorf("got %+v, %v", one, err)
	}
	if _, _, err := choose([]string{"N99"}, true); err == nil {
		t.Error("N99 was found")
	}
}

func TestExperimentsWithNodesNeedPostgreSQL(t *testing.T) {
	chosen, needDB, err := choose([]string{"all"}, false)
	if err != nil || len(needDB) == 0 || len(chosen)+len(needDB) != len(Experiments()) || !slices.Contains(needDB, "K1") {
		t.Errorf("all: %d chosen, left out %v, %v", len(chosen), needDB, err)
	}
	if chosen, needDB, err = choose([]string{"notifybc"}, false); err != nil || !slices.Equal(needDB, []string{"N2", "N3"}) || len(chosen) == 0 {
		t.Errorf("a suite with some of them: %d chosen, left out %v, %v", len(chosen), needDB, err)
	}
	for _, id := range []string{"K1", "cluster"} {
		if _, _, err := choose([]string{id}, false); err == nil || !strings.Contains(err.Error(), "K1") || !strings.Contains(err.Error(), "PostgreSQL") {
			t.Errorf("%s: %v", id, err)
		}
		if chosen, _, err := choose([]string{id}, true); err != nil || chosen[0].ID != "K1" {
			t.Errorf("%s with a database: %v", id, err)
		}
	}
}
