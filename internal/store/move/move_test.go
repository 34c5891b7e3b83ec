package move_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
)

func TestAStoppedMoveTakesAllThatIsKept(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		from, to := r.from.side(t, "old"), r.to.side(t, "new")
		populate(t, from.DB, today-2, today)
		attempts := store.DayTables()[3]
		part, err := from.DB.Day(t.Context(), today, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := from.DB.Day(t.Context(), today-1, true); err != nil { // nothing is in it
			t.Fatal(err)
		}
		many := invent(rand.New(rand.NewPCG(3, 4)), &attempts, 12_000) // more than a page
		for _, row := range many {
			row[0] = row[0].(int64) + 100
		}
		fill(t, part, attempts.Name, many)
		held := store.DayTables()[7]
		fill(t, part, held.Name, [][]any{{int64(1_000_001), strings.Repeat("x", 5<<20)}, {int64(1_000_002), strings.Repeat("y", 5<<20)}, {int64(1_000_003), "z"}}) // and pages that are full of one
		report, err := move.Stopped(t.Context(), from, to, options(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Tables) != len(store.ControlTables())+len(store.SessionTables())+len(store.MailboxTables())+3*len(store.DayTables()) {
			t.Errorf("%d tables were compared", len(report.Tables))
		}
		if want := int64(40*(len(tables(store.ControlTables()))+len(tables(store.SessionTables()))+len(tables(store.MailboxTables()))+2*len(tables(store.DayTables()))) + 12_003 + 1 + 2*3); report.Rows() != want {
			t.Errorf("%d rows were compared, want %d", report.Rows(), want)
		}
	})
}

// at opens the database of a place for a moment.
func (k kind) at(t *testing.T, name, place string, do func(move.Side)) {
	t.Helper()
	side := k.again(t, name, place)
	do(side)
	if err := side.DB.Close(); err != nil {
		t.Error(err)
	}
}

func TestAMoveGoesThereAndBackAgain(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		a, b := r.from.made(t), r.to.made(t)
		atA := func(do func(move.Side)) { r.from.at(t, "a", a, do) }
		atB := func(do func(move.Side)) { r.to.at(t, "b", b, do) }
		atA(func(side move.Side) { populate(t, side.DB, today) })
		for range 2 {
			if _, err := move.Stopped(t.Context(), r.from.again(t, "a", a), r.to.again(t, "b", b), options(t)); err != nil {
				t.Fatal(err)
			}
			atA(func(side move.Side) {
				left, err := move.ReadMark(t.Context(), side.DB)
				if err != nil || left.State != move.Left || left.Peer != "b" {
					t.Fatalf("a is marked %+v (%v)", left, err)
				}
				if err := move.CheckStart(t.Context(), side); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), "moved to b") {
					t.Errorf("starting on a: %v", err)
				}
				if _, err := move.NewSwitch(side).Move(t.Context(), files.side(t, "c"), options(t)); fanfare.CodeOf(err) != fanfare.Conflict {
					t.Errorf("what was moved is moved again: %v", err)
				}
			})
			atB(func(side move.Side) {
				if err := move.CheckStart(t.Context(), side); err != nil {
					t.Errorf("starting on b: %v", err)
				}
				part, err := side.DB.Day(t.Context(), today, false)
				if err != nil {
					t.Fatal(err)
				}
				fill(t, part, "held", [][]any{{time.Now().UnixNano(), "written in b"}})
			})
			if _, err := move.Stopped(t.Context(), r.to.again(t, "b", b), r.from.again(t, "a", a), options(t)); err != nil {
				t.Fatal(err)
			}
			atA(func(here move.Side) { atB(func(there move.Side) { same(t, here, there) }) })
		}
	})
}

func TestAMoveIsRefusedWhereSomethingElseIsKept(t *testing.T) {
	amongFiles(t, func(t *testing.T, r route) {
		for _, c := range []struct {
			name string
			fill func(t *testing.T, db store.Database)
		}{
			{"a service", func(t *testing.T, db store.Database) {
				fill(t, db.Control(), "config", [][]any{{"service", int64(1), int64(0), "news", "{}", int64(0)}})
			}},
			{"a day", func(t *testing.T, db store.Database) {
				if _, err := db.Day(t.Context(), today, true); err != nil {
					t.Fatal(err)
				}
			}},
			{"an unfinished move from elsewhere", func(t *testing.T, db store.Database) {
				other := r.from.side(t, "elsewhere")
				populate(t, other.DB, today)
				broken := &faulty{Database: db, fault: failAt(3)}
				if _, err := move.NewSwitch(other).Move(t.Context(), move.Side{DB: broken, Name: "new"}, options(t)); !errors.Is(err, errFault) {
					t.Fatal(err)
				}
			}},
			{"what was moved here", func(t *testing.T, db store.Database) {
				if _, err := move.NewSwitch(r.from.side(t, "elsewhere")).Move(t.Context(), move.Side{DB: db, Name: "new"}, options(t)); err != nil {
					t.Fatal(err)
				}
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				from, to := r.from.side(t, "old"), r.to.side(t, "new")
				c.fill(t, to.DB)
				before, err := move.ReadMark(t.Context(), to.DB)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := move.Plan(t.Context(), from, to); fanfare.CodeOf(err) != fanfare.Conflict {
					t.Errorf("the plan is %v", err)
				}
				if _, err := move.NewSwitch(from).Move(t.Context(), to, options(t)); fanfare.CodeOf(err) != fanfare.Conflict {
					t.Errorf("got %v", err)
				}
				after, err := move.ReadMark(t.Context(), to.DB)
				if err != nil || (before == nil) != (after == nil) || before != nil && *before != *after {
					t.Errorf("its mark was %+v and is %+v (%v)", before, after, err)
				}
			})
		}
	})
}

// failAt makes the nth write fail, and all behind it.
func failAt(nth int) func(int, store.Session) (store.Session, error) {
	return func(n int, s store.Session) (store.Session, error) {
		if n >= nth {
			return nil, errFault
		}
		return s, nil
	}
}

// TestAMoveThatFailsAnywhereLeavesTheSourceInCharge has the target fail at its
// writes in turn, and moves again what that left.
func TestAMoveThatFailsAnywhereLeavesTheSourceInCharge(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		begin := 1 + rand.IntN(r.stride())
		t.Logf("beginning with write %d", begin)
		for nth := begin; ; nth += r.stride() {
			from, to := r.from.side(t, "old"), r.to.side(t, "new")
			populate(t, from.DB, today)
			writes := &faulty{Database: to.DB, fault: failAt(nth)}
			s := move.NewSwitch(from)
			_, err := s.Move(t.Context(), move.Side{DB: writes, Name: "new"}, options(t))
			mark, markErr := move.ReadMark(t.Context(), to.DB)
			if markErr != nil {
				t.Fatal(markErr)
			}
			if err == nil && mark.State == move.Here {
				if nth < 20 {
					t.Errorf("the target was written %d times only", nth)
				}
				return
			}
			if err == nil && mark.State == move.Full { // but for the last mark, which the next run sets
				continue
			}
			if !errors.Is(err, errFault) {
				t.Fatalf("write %d: %v", nth, err)
			}
			if s.Current().Name != "old" {
				t.Fatalf("write %d: %s is in charge", nth, s.Current().Name)
			}
			if err := move.CheckStart(t.Context(), from); err != nil {
				t.Fatalf("write %d: the source is refused: %v", nth, err)
			}
			if err := move.CheckStart(t.Context(), to); err == nil && mark != nil {
				t.Fatalf("write %d: the target is not refused", nth)
			}
			fill(t, s.Control(), "filters", [][]any{{int64(77), "written after the failure"}})
			if _, err := s.Move(t.Context(), to, options(t)); err != nil {
				t.Fatalf("write %d: again: %v", nth, err)
			}
		}
	})
}

func TestAMoveThatWasCutShortInItsLastStepIsEnded(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		a, b := r.from.made(t), r.to.made(t)
		from, to := r.from.again(t, "old", a), r.to.again(t, "new", b)
		populate(t, from.DB, today)
		unmarked := &faulty{Database: to.DB, fault: func(_ int, s store.Session) (store.Session, error) { return &unmarkable{s, move.Here}, nil }}
		if _, err := move.NewSwitch(from).Move(t.Context(), move.Side{DB: unmarked, Name: "new"}, options(t)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(from.DB.Close(), to.DB.Close()); err != nil {
			t.Fatal(err)
		}
		from, to = r.from.again(t, "old", a), r.to.again(t, "new", b)
		for _, side := range []move.Side{from, to} {
			if err := move.CheckStart(t.Context(), side); fanfare.CodeOf(err) != fanfare.Conflict {
				t.Errorf("starting on %s: %v", side.Name, err)
			}
		}
		if _, err := move.Stopped(t.Context(), from, to, options(t)); err != nil {
			t.Fatal(err)
		}
		r.to.at(t, "new", b, func(to move.Side) {
			if err := move.CheckStart(t.Context(), to); err != nil {
				t.Error(err)
			}
			r.from.at(t, "old", a, func(from move.Side) { same(t, from, to) })
		})
	})
}

// TestADifferenceIsFoundAndNamed has a target that forgets a row.
func TestADifferenceIsFoundAndNamed(t *testing.T) {
	amongFiles(t, func(t *testing.T, r route) {
		from, to := r.from.side(t, "old"), r.to.side(t, "new")
		populate(t, from.DB, today)
		forgets := &faulty{Database: to.DB, fault: func(_ int, s store.Session) (store.Session, error) { return &forgetful{s}, nil }}
		s := move.NewSwitch(from)
		report, err := s.Move(t.Context(), move.Side{DB: forgets, Name: "new"}, options(t))
		if fanfare.CodeOf(err) != fanfare.Internal || !strings.Contains(err.Error(), "due of "+today.String()+": the source has 40 rows") {
			t.Errorf("got %v", err)
		}
		if differ := report.Differences(); len(differ) != 1 || differ[0].Table != "due" || differ[0].To.Rows != 39 {
			t.Errorf("the differences are %+v", differ)
		}
		if s.Current().Name != "old" {
			t.Errorf("%s is in charge", s.Current().Name)
		}
	})
}

type forgetful struct{ store.Session }

func (f *forgetful) Insert(statement string, n int, bind func(int, store.Values)) error {
	if statement == "fill_due" {
		n--
	}
	return f.Session.Insert(statement, n, bind)
}

func TestCompareNamesTheDifferences(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		a, b := r.from.side(t, "a"), r.to.side(t, "b")
		populate(t, a.DB, today-1, today)
		populate(t, b.DB, today)
		fill(t, b.DB.Control(), "filters", [][]any{{int64(1), "another text"}})
		report, err := move.Compare(t.Context(), a, b, nil)
		if err == nil {
			t.Fatal("they are called equal")
		}
		found := map[string]bool{}
		for _, c := range report.Differences() {
			found[c.Part+"/"+c.Table] = true
		}
		if !found["control/filters"] || !found[(today-1).String()+"/attempts"] || found[today.String()+"/attempts"] || found["control/config"] {
			t.Errorf("the differences are %v", found)
		}
	})
}

func TestOneMoveAtATimeAndNoneWhileClosing(t *testing.T) {
	amongFiles(t, func(t *testing.T, r route) {
		from, to := r.from.side(t, "old"), r.to.side(t, "new")
		populate(t, from.DB, today)
		s := move.NewSwitch(from)
		held, release := make(chan struct{}), make(chan struct{})
		slow := &faulty{Database: to.DB, fault: func(n int, s store.Session) (store.Session, error) {
			if n == 3 {
				close(held)
				<-release
			}
			return s, nil
		}}
		over := make(chan error)
		go func() {
			_, err := s.Move(t.Context(), move.Side{DB: slow, Name: "new"}, options(t))
			over <- err
		}()
		<-held
		if _, err := s.Move(t.Context(), r.to.side(t, "other"), options(t)); fanfare.CodeOf(err) != fanfare.Conflict {
			t.Errorf("a second move: %v", err)
		}
		removed := make(chan error)
		go func() { removed <- s.RemoveDay(context.Background(), today) }()
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		close(release)
		if err := <-over; fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("the move ended with %v", err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		<-removed // before or after the end, but not during the move
		if _, err := s.Move(t.Context(), r.to.side(t, "other"), options(t)); fanfare.CodeOf(err) != fanfare.Unavailable {
			t.Errorf("a move of what is closed: %v", err)
		}
	})
}
