package move_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
)

// TestWritersContinueWhenAMoveFails has the target fail while it is written.
func TestWritersContinueWhenAMoveFails(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		s := move.NewSwitch(r.from.side(t, "old"))
		populate(t, s, today)
		c := startClients(t, s, 4)
		for _, statement := range []string{"clear_config", "fill_filters", "fill_attempts", "switch", "move_mark"} {
			c.after(20)
			to := r.to.side(t, "new")
			breaks := func(_ int, s store.Session) (store.Session, error) { return &breaking{s, statement, c}, nil }
			_, err := s.Move(t.Context(), move.Side{DB: &faulty{Database: to.DB, fault: breaks}, Name: "new"}, options(t))
			if !errors.Is(err, errFault) {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		c.after(20)
		c.end()
	})
}

// breaking fails a statement: of what is cleared, copied, replayed or marked.
type breaking struct {
	store.Session
	statement string
	clients   *clients
}

func (b *breaking) Run(statement string, args ...any) error {
	if statement == b.statement && (statement != "move_mark" || args[0] == move.Full) {
		return errFault
	}
	return b.Session.Run(statement, args...)
}

func (b *breaking) Insert(statement string, n int, bind func(int, store.Values)) error {
	if statement == b.statement {
		return errFault
	}
	if statement == "fill_due" {
		b.clients.after(200) // so that there is something to replay
	}
	return b.Session.Insert(statement, n, bind)
}

// TestAMoveIsBrokenOffWhereItsJournalsAreFull fails no write.
func TestAMoveIsBrokenOffWhereItsJournalsAreFull(t *testing.T) {
	amongFiles(t, func(t *testing.T, r route) {
		s := move.NewSwitch(r.from.side(t, "old"))
		populate(t, s, today)
		c := startClients(t, s, 2)
		to := r.to.side(t, "new")
		slow := &faulty{Database: to.DB, fault: func(_ int, s store.Session) (store.Session, error) {
			if s != nil {
				c.after(20) // what is written meanwhile does not fit
			}
			return s, nil
		}}
		o := options(t)
		o.JournalBytes = 500
		if _, err := s.Move(t.Context(), move.Side{DB: slow, Name: "new"}, o); fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("got %v", err)
		}
		c.after(20)
		c.end()
		if s.Current().Name != "old" {
			t.Errorf("%s is in charge", s.Current().Name)
		}
	})
}

// TestASourceThatCannotBeMarkedStaysInCharge fails the one mark that decides.
func TestASourceThatCannotBeMarkedStaysInCharge(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		old := r.from.side(t, "old")
		to := r.to.side(t, "new")
		s := move.NewSwitch(move.Side{Name: "old", DB: &faulty{Database: old.DB, fault: func(_ int, s store.Session) (store.Session, error) {
			return &unmarkable{s, move.Left}, nil
		}}})
		if _, err := s.Move(t.Context(), to, options(t)); !errors.Is(err, errFault) {
			t.Fatalf("got %v", err)
		}
		if s.Current().Name != "old" {
			t.Errorf("%s is in charge", s.Current().Name)
		}
		if err := move.CheckStart(t.Context(), old); err != nil {
			t.Errorf("the source is refused: %v", err)
		}
		if mark, err := move.ReadMark(t.Context(), to.DB); err != nil || mark.State != move.Filling {
			t.Errorf("the target is marked %+v (%v)", mark, err)
		}
		fill(t, s.Control(), "filters", [][]any{{int64(1), "written after the failure"}})
	})
}

// TestAMoveThatIsStoppedTooLateIsDone stops a move when the source has been
// marked: what is in charge then must not be closed by who is told of a failure.
func TestAMoveThatIsStoppedTooLateIsDone(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		ctx, stop := context.WithCancel(t.Context())
		from, to := r.from.side(t, "old"), r.to.side(t, "new")
		s := move.NewSwitch(move.Side{Name: "old", DB: &faulty{Database: from.DB, fault: func(_ int, s store.Session) (store.Session, error) {
			return &watched{s, func(statement string, args []any) {
				if statement == "move_mark" && args[0] == move.Left {
					stop()
				}
			}}, nil
		}}})
		if _, err := s.Move(ctx, to, options(t)); err != nil {
			t.Errorf("the move says %v, and %s is in charge", err, s.Current().Name)
		}
		if err := move.CheckStart(t.Context(), to); s.Current().Name != "new" || err != nil {
			t.Errorf("%s is in charge (%v)", s.Current().Name, err)
		}
		fill(t, s.Control(), "filters", [][]any{{int64(1), "written after the move"}})
	})
}

// watched tells of each statement that is run.
type watched struct {
	store.Session
	tell func(statement string, args []any)
}

func (w *watched) Run(statement string, args ...any) error {
	w.tell(statement, args)
	return w.Session.Run(statement, args...)
}

func (w *watched) Insert(statement string, n int, bind func(int, store.Values)) error {
	w.tell(statement, nil)
	return w.Session.Insert(statement, n, bind)
}

// TestAMoveEndsWhereAWriteMayHaveBeenKept loses the answer to a commit in a part
// that is followed: what may be in the source alone is not left behind.
func TestAMoveEndsWhereAWriteMayHaveBeenKept(t *testing.T) {
	amongFiles(t, func(t *testing.T, r route) {
		from, to := r.from.side(t, "old"), r.to.side(t, "new")
		populate(t, from.DB, today)
		source := &unanswered{Database: from.DB}
		s := move.NewSwitch(move.Side{Name: "old", DB: source})
		var once sync.Once
		target := &faulty{Database: to.DB, fault: func(_ int, session store.Session) (store.Session, error) {
			return &watched{session, func(statement string, _ []any) {
				if statement != "fill_broadcasts" { // of today, which is copied last
					return
				}
				once.Do(func() {
					source.lost.Store(true)
					if err := insert(t.Context(), s.Control(), "filters", [][]any{{int64(1 << 30), "kept, and nobody knows"}}); !errors.Is(err, store.ErrAway) {
						t.Errorf("the write says %v", err)
					}
				})
			}}, nil
		}}
		if _, err := s.Move(t.Context(), move.Side{Name: "new", DB: target}, options(t)); err == nil || !strings.Contains(err.Error(), "it is unknown whether it was committed") {
			t.Errorf("the move says %v", err)
		}
		if s.Current().Name != "old" {
			t.Errorf("%s is in charge", s.Current().Name)
		}
	})
}

// unanswered is a database whose control part keeps a transaction and does not
// say so.
type unanswered struct {
	store.Database
	lost atomic.Bool
}

func (u *unanswered) Control() store.Part { return &unansweredPart{u.Database.Control(), u} }

type unansweredPart struct {
	store.Part
	of *unanswered
}

func (p *unansweredPart) Write(ctx context.Context, fn func(store.Session) error) error {
	err := p.Part.Write(ctx, fn)
	if err == nil && p.of.lost.CompareAndSwap(true, false) {
		return fmt.Errorf("the answer was lost: %w", store.ErrAway)
	}
	return err
}

// unmarkable fails a mark, after it was made.
type unmarkable struct {
	store.Session
	state string
}

func (u *unmarkable) Run(statement string, args ...any) error {
	if statement == "move_mark" && args[0] == u.state {
		return errors.Join(u.Session.Run(statement, args...), errFault)
	}
	return u.Session.Run(statement, args...)
}
