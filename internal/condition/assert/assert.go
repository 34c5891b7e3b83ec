// Package assert checks the assumptions of the index about its own parts, in builds with the
// tag assertions. Other builds omit the checks. The packages below internal/condition call it.
package assert

import "fmt"

// True panics if ok is false. A caller that computes a value for the check tests [Enabled]
// first, so that other builds do not compute it.
func True(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("condition: assertion failed: " + fmt.Sprintf(format, args...))
	}
}
