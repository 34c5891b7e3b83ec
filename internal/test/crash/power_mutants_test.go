//go:build crashsteps && powerloss && mutation

package crash

import (
	"os"
	"os/exec"
	"testing"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// mutants are the faults that the tests above must find, and the test that finds each.
var mutants = []struct{ fault, database, test string }{
	{"sqlite-without-sync", "sqlite", "TestNothingAcknowledgedIsLostWhenThePowerFails"},
	{"postgres-without-sync", "postgres", "TestNothingAcknowledgedIsLostWhenThePowerFails"},
	{"bus-without-sync", "sqlite", "TestNothingAcknowledgedIsLostWhenThePowerFails"},
	{"files-without-sync", "sqlite", "TestFilesOfAcceptedMessagesSurviveLossesOfPower"},
	{"files-without-names", "sqlite", "TestFilesOfAcceptedMessagesSurviveLossesOfPower"},
}

// TestEachMissingSyncIsFound runs a test of losses with each fault, and expects that it fails within 30 losses.
func TestEachMissingSyncIsFound(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.fault, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+m.test+"$", "-test.timeout=9m")
			cmd.Env = append(os.Environ(), "FANFARE_FAULT="+m.fault, pgtest.ChoiceVariable+"="+m.database, "CRASH_POWER_LOSSES=30", "CRASH_PATIENCE=20s")
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("30 losses of power did not show it:\n%s", out)
			}
			t.Logf("found: %s", out[max(0, len(out)-2000):])
		})
	}
}
