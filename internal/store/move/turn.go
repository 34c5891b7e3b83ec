package move

import "context"

// A turn is a mutex that is not waited for longer than a call has time: who has
// it may be waiting for a database that says nothing.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn. Whoever took it must Unlock it.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }
