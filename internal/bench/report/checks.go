package report

import (
	"fmt"
	"strings"
)

// A CheckError lists what must not happen on any machine: mails lost or sent twice, a
// trace that does not agree with what was sent, an event that matched the wrong
// subscriptions.
type CheckError struct{ What []string }

func (w *CheckError) Error() string { return strings.Join(w.What, "; ") }

// Checks collects the failed checks of a run.
type Checks []string

func (w *Checks) Require(ok bool, format string, args ...any) {
	if !ok {
		*w = append(*w, fmt.Sprintf(format, args...))
	}
}

func (w Checks) Err() error {
	if len(w) == 0 {
		return nil
	}
	return &CheckError{w}
}

// FirstError returns err, or else the error of the checks.
func FirstError(err error, w Checks) error {
	if err != nil {
		return err
	}
	return w.Err()
}
