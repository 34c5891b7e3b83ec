// Package assert checks what the index assumes about its own parts, in builds with the tag
// assertions. Other builds leave the checks out. The packages below internal/condition call it.
package assert

import "fmt"

// True panics if ok is false. A caller that computes something for the check looks at [Enabled]
// first, so that other builds do not compute it.
func True(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("condition: assertion failed: " + fmt.Sprintf(format, args...))
	}
}
