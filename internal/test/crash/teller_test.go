//go:build crashsteps

package crash

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A teller is a test that says why it failed once more at its very end, below
// all logs: of a long output only the end may be kept.
type teller struct {
	*testing.T

	mu   sync.Mutex
	said []string
}

// The most that is said again.
const (
	reasons     = 5
	reasonLines = 3
)

// tell makes a teller, before anything that logs at the end of the test.
func tell(t *testing.T) *teller {
	r := &teller{T: t}
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.said) > 0 {
			t.Logf("it failed %d times:\n%s", len(r.said), strings.Join(r.said[:min(reasons, len(r.said))], "\n"))
		}
	})
	return r
}

func (t *teller) note(reason string) {
	lines := strings.SplitN(strings.TrimSpace(reason), "\n", reasonLines+1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, strings.Join(lines[:min(reasonLines, len(lines))], "\n"))
}

func (t *teller) Error(args ...any) {
	t.Helper()
	t.note(fmt.Sprint(args...))
	t.T.Error(args...)
}

func (t *teller) Errorf(format string, args ...any) {
	t.Helper()
	t.note(fmt.Sprintf(format, args...))
	t.T.Errorf(format, args...)
}

func (t *teller) Fatal(args ...any) {
	t.Helper()
	t.note(fmt.Sprint(args...))
	t.T.Fatal(args...)
}

func (t *teller) Fatalf(format string, args ...any) {
	t.Helper()
	t.note(fmt.Sprintf(format, args...))
	t.T.Fatalf(format, args...)
}
