//go:build crashsteps

package clock

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The clock has the step that a file contains, and none without one.
func TestATestStepsTheClock(t *testing.T) {
	stepFile = filepath.Join(t.TempDir(), "step")
	t.Cleanup(func() { stepFile = "" })
	const tolerance = time.Second
	for _, seconds := range []int{0, 2, -2} {
		if seconds != 0 {
			if err := os.WriteFile(stepFile, fmt.Appendln(nil, seconds), 0o600); err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * stepCheckInterval)
		}
		if wrong := (time.Until(System{}.Now()) - time.Duration(seconds)*time.Second).Abs(); wrong > tolerance {
			t.Errorf("after a step of %d s, the clock is wrong by %v", seconds, wrong)
		}
	}
}
