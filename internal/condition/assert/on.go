//go:build assertions

package assert

// Enabled reports whether this build checks assertions. A check takes longer than the work that
// it checks.
const Enabled = true
