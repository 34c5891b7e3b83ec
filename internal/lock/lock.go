// Package lock has a mutual exclusion lock whose waiters give up when a context ends.
package lock

import "context"

// A Lock is held by one goroutine at a time. New makes one.
type Lock chan struct{}

// New returns a lock that nobody holds.
func New() Lock { return make(Lock, 1) }

// Lock waits until it holds the lock, or returns the error of ctx if ctx ends before.
func (l Lock) Lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryLock reports whether it holds the lock now, without waiting.
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
