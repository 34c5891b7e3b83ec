package move

import "context"

// A turn is a mutex with a context: its holder may wait for a database that does not answer,
// and others must not wait longer than their calls have time.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn. The caller must Unlock it afterwards.
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
