// Package failpoint names the durable steps at which a crash test ends the process, and the
// faults that a test injects to see that the checks find them. Both exist only in builds with
// the tag crashsteps.
package failpoint
