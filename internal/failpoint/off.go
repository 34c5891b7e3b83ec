//go:build !crashsteps

package failpoint

// Hit marks a durable step. It does nothing in this build.
func Hit(string) {}

// Fault reports whether a test asked for the named fault. There are no faults in this build.
func Fault(string) bool { return false }
