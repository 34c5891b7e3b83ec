// Package ctxlock has a mutual exclusion lock whose wait ends with a context. It holds no state of its
// own. The server uses it where two long tasks exclude each other, such as a backup and an erasure.
package ctxlock

import "context"

// Lock is held by one goroutine at a time. Make it with New.
type Lock chan struct{}

// New returns a lock that nobody holds.
func New() Lock { return make(Lock, 1) }

// Lock waits for the lock until ctx ends, and then returns the error of ctx.
func (l Lock) Lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryLock takes the lock if nobody holds it, and reports whether it did.
func (l Lock) TryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock releases the lock.
func (l Lock) Unlock() { <-l }
