package bench

import (
	"slices"
	"strings"
	"testing"
)

// Every id of the plan is either there or said to be missing.
func TestEveryPlannedExperimentIsThereOrSaidToBeMissing(t *testing.T) {
	missing := Missing()
	planned := map[string]bool{}
	for _, s := range suites() {
		for id := range strings.FieldsSeq(s.ids) {
			planned[id] = true
			_, there := findExperiment(id)
			if _, absent := missing[id]; there == absent {
				t.Errorf("%s of %s: there %v, missing %v", id, s.name, there, absent)
			}
		}
	}
	for id := range missing {
		if !planned[id] {
			t.Errorf("%s is missing and in no suite", id)
		}
	}
}

func TestASuiteRunsItsExperimentsAndNamesTheMissingOnes(t *testing.T) {
	chosen, _, err := choose([]string{"ssns"}, false)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range chosen {
		ids = append(ids, e.ID)
	}
	if !slices.Contains(ids, "S1") || !slices.Contains(ids, "E5") || slices.Contains(ids, "E1") {
		t.Errorf("got %v", ids)
	}
	var said strings.Builder
	sayMissing(&said, []string{"SSNS", "N1"})
	if !strings.Contains(said.String(), "ssns: E1 E2 E3 E4 cannot run yet: needs file and SQL providers\n") || strings.Contains(said.String(), "N2") {
		t.Errorf("said %s", said.String())
	}
	if _, _, err := choose([]string{"e1"}, false); err == nil || !strings.Contains(err.Error(), "cannot run yet") {
		t.Errorf("a single one that is missing: %v", err)
	}
}
