// Package doctor looks at what a server stands on, as it would be started, and
// says what is wrong and how to mend it.
//
// State. Nothing is kept and nothing is changed. The one thing that is written is
// a small file in the data directory, to see how long a sync takes; it is removed
// at once. Mail servers are spoken to up to the point where an envelope could
// follow, and no further.
//
// Failure. A check that cannot be made is a finding of its own, never an error:
// the others go on.
package doctor
