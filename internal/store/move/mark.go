package move

import (
	"context"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A Mark is the state of a database in a move. It is stored in the control part.
type Mark struct {
	State string
	Move  string // the same in both databases of a move
	Peer  string // the name of the other one
	At    time.Time
}

// The states of a database during and after a move. A move goes through them in this order:
//
//	target    source
//	filling             the data in the target is incomplete
//	full                the target is complete, and the source may still be in use
//	full      left      the source is no longer in use
//	here      left      the target is in use
//
// A move that is interrupted before the source has left has no effect. A move that is interrupted later is completed by
// marking the target.
const (
	Filling = "filling"
	Full    = "full"
	Here    = "here"
	Left    = "left"
)

// ReadMark returns the mark of a database, or nil if it has none.
func ReadMark(ctx context.Context, db store.Database) (mark *Mark, err error) {
	err = db.Control().Read(ctx, func(s store.Session) (err error) {
		mark, err = readMark(s)
		return err
	})
	return mark, err
}

func readMark(s store.Session) (mark *Mark, err error) {
	err = s.Each("move_marked", func(r store.Row) error {
		mark = &Mark{State: r.Text(0), Move: r.Text(1), Peer: r.Text(2), At: time.Unix(0, r.Int64(3)).UTC()}
		return nil
	})
	return mark, err
}

func (m *Mark) write(ctx context.Context, db store.Database) error {
	return db.Control().Write(ctx, func(s store.Session) error {
		return s.Run("move_mark", m.State, m.Move, m.Peer, m.At.UnixNano())
	})
}

// A syncer is a database that can make committed data survive a power loss in any durability mode.
type syncer interface{ Sync(context.Context) error }

// firm makes a mark survive a power loss, so that a later mark never exists without it.
func firm(ctx context.Context, db store.Database) error {
	if s, ok := db.(syncer); ok {
		return s.Sync(ctx)
	}
	return nil
}

// Unmark removes the mark of a database, so that a server starts on it again. The database does
// not have the data that was written since the move.
func Unmark(ctx context.Context, db store.Database) error {
	return db.Control().Write(ctx, func(s store.Session) error { return s.Run("move_unmark") })
}

// CheckStart returns an error if the database is not the one in use, so that no server starts on
// it.
func CheckStart(ctx context.Context, of Side) error {
	return of.DB.Control().Read(ctx, func(s store.Session) error { return CheckCharge(s, of.Name) })
}

// CheckCharge is CheckStart for a caller that has opened the control part of the database already.
func CheckCharge(s store.Session, name string) error {
	mark, err := readMark(s)
	if err != nil || mark == nil || mark.State == Here {
		return err
	}
	return mark.refusal(name)
}

func (m *Mark) refusal(name string) error {
	at := m.At.Format(time.RFC3339)
	switch m.State {
	case Left:
		return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the data in %s was moved to %s at %s", name, m.Peer, at),
			Hint: "set db to the new database, or leave db empty if the data is in files now; to move back, run fanfare migrate --from NEW --to OLD"}
	case Full:
		return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the move from %s into %s was interrupted in its last step at %s", m.Peer, name, at),
			Hint: "run fanfare migrate again with the same --from and --to: this completes the move, or starts it again if the server had not switched to the new database"}
	default:
		return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the move from %s to %s that began at %s is not complete", m.Peer, name, at),
			Hint: "start the server with the old database, which is unchanged, or run fanfare migrate again with the same --from and --to"}
	}
}
