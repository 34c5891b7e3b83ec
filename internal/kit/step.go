//go:build !crashsteps

package kit

// Step marks a durable step of the way of an event. In this build it does
// nothing. A build with the tag crashsteps ends the process there, as a kill
// would, when the environment asks for it.
func Step(string) {}

// Fault reports whether the named fault is asked for: a mistake that a test puts
// in, to see that it is found. In this build there is none.
func Fault(string) bool { return false }
