package report

import (
	"fmt"
	"strings"
)

// A CheckError is what no machine excuses: mails lost or sent twice, a trace that
// does not agree, an event that matched other subscriptions than it should.
type CheckError struct{ What []string }

func (w *CheckError) Error() string { return strings.Join(w.What, "; ") }

// wrong collects what is Wrong in a run.
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

// FirstError is the first that there is.
func FirstError(err error, w Checks) error {
	if err != nil {
		return err
	}
	return w.Err()
}
