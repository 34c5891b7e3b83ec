package move_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
)

// TestWritersAndReadersContinueDuringAMove has clients that change everything,
// make days and read what they wrote, while the database moves there and back.
func TestWritersAndReadersContinueDuringAMove(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		old := r.from.side(t, "old")
		populate(t, old.DB, today-2, today-1)
		s := move.NewSwitch(old)
		c := startClients(t, s, 4)
		c.after(50)
		for i := range 3 {
			to := r.to.side(t, fmt.Sprintf("new %d", i))
			report, err := s.Move(t.Context(), to, options(t))
			if err != nil {
				t.Fatal(err)
			}
			if s.Current() != to || report.Pause <= 0 {
				t.Errorf("%s is in charge after a pause of %v", s.Current().Name, report.Pause)
			}
			c.after(50)
		}
		c.end()
		if days, err := s.Days(t.Context()); err != nil || len(days) < 5 {
			t.Errorf("it has %d days (%v)", len(days), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestADayThatIsMadeDuringAMoveIsPartOfIt makes one while the others are copied,
// and removes one, which waits.
func TestADayThatIsMadeDuringAMoveIsPartOfIt(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		s := move.NewSwitch(r.from.side(t, "old"))
		populate(t, s, today-1, today)
		removed := make(chan error, 1)
		to := r.to.side(t, "new")
		meanwhile := &faulty{Database: to.DB, fault: func(n int, session store.Session) (store.Session, error) {
			if n == 5 {
				fillDay(t, s, today+1)
				fill(t, s.Control(), "audit", [][]any{{int64(1 << 30), "k", "", "r", "news", "put", "topic", "t", nil}})
				go func() { removed <- s.RemoveDay(context.Background(), today-1) }()
			}
			return session, nil
		}}
		report, err := s.Move(t.Context(), move.Side{DB: meanwhile, Name: "new"}, options(t))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(report.Tables, func(c move.Compared) bool {
			return c.Part == (today+1).String() && c.Table == "held" && c.To.Rows == 40
		}) {
			t.Errorf("compared were %+v", report.Tables)
		}
		if err := <-removed; err != nil {
			t.Error(err)
		}
		if days, err := to.DB.Days(t.Context()); err != nil || !slices.Equal(days, []fanfare.Day{today + 1, today}) {
			t.Errorf("the days are %v (%v)", days, err)
		}
	})
}

// TestWritersWaitForASlowTarget has a target that does everything
// five times: it would never catch up with who writes as fast as it can.
func TestWritersWaitForASlowTarget(t *testing.T) {
	amongFiles(t, func(t *testing.T, r route) {
		s, to := move.NewSwitch(r.from.side(t, "old")), r.to.side(t, "new")
		populate(t, s, today)
		stop, ended := make(chan struct{}), make(chan int64)
		long := strings.Repeat("long ", 1000)
		go func() {
			number := int64(1) << 30
			defer func() { ended <- number }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				rows := [][]any{{number, long}, {number + 1, long}}
				if number%1000 == 0 {
					rows[1][1] = strings.Repeat(long, 15) // and one that is more than is replayed together
				}
				if err := insert(context.Background(), s.Control(), "filters", rows); err != nil {
					t.Error(err)
					return
				}
				number += 2
			}
		}()
		var progress move.Progress
		o := options(t)
		o.Progress = &progress
		if _, err := s.Move(t.Context(), move.Side{DB: &fivefold{to.DB}, Name: "new"}, o); err != nil {
			t.Fatal(err)
		}
		close(stop)
		end := <-ended
		var n int64
		err := s.Control().Read(t.Context(), func(s store.Session) error {
			return s.Each("count_filters", func(r store.Row) error { n = r.Int64(0); return nil })
		})
		if want := 40 + end - 1<<30; err != nil || n != want {
			t.Errorf("there are %d filters (%v), want %d", n, err, want)
		}
		if state := progress.State(); state.Phase != move.Done {
			t.Errorf("the progress says %+v", state)
		}
	})
}

// fivefold writes everything five times, of which the last counts.
type fivefold struct{ store.Database }

func (f *fivefold) Control() store.Part { return &fivefoldPart{f.Database.Control()} }

type fivefoldPart struct{ store.Part }

func (p *fivefoldPart) Write(ctx context.Context, fn func(store.Session) error) error {
	for range 4 {
		err := p.Part.Write(ctx, func(s store.Session) error { return errors.Join(fn(s), errTurned) })
		if !errors.Is(err, errTurned) {
			return err
		}
	}
	return p.Part.Write(ctx, fn)
}

// TestALongReadDoesNotHoldUpAMove holds a snapshot of the old database over the
// change: it sees its moment, and the old database is closed behind it.
func TestALongReadDoesNotHoldUpAMove(t *testing.T) {
	along(t, func(t *testing.T, r route) {
		s := move.NewSwitch(r.from.side(t, "old"))
		populate(t, s, today)
		count := func(session store.Session) (n int64) {
			err := session.Each("count_filters", func(r store.Row) error { n = r.Int64(0); return nil })
			if err != nil {
				t.Error(err)
			}
			return n
		}
		began, moved, ended := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			ended <- s.Control().Snapshot(context.Background(), func(session store.Session) error {
				before := count(session)
				close(began)
				<-moved
				if after := count(session); after != before {
					t.Errorf("a moment has %d rows, then %d", before, after)
				}
				return nil
			})
		}()
		<-began
		if _, err := s.Move(t.Context(), r.to.side(t, "new"), options(t)); err != nil {
			t.Fatal(err)
		}
		fill(t, s.Control(), "filters", [][]any{{int64(1 << 30), "written after the move"}})
		close(moved)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestMovedDataCanBeRemovedAfterwards(t *testing.T) {
	amongFiles(t, func(t *testing.T, r route) {
		s := move.NewSwitch(r.from.side(t, "old"))
		populate(t, s, today-1, today)
		if _, err := s.Move(t.Context(), r.to.side(t, "new"), options(t)); err != nil {
			t.Fatal(err)
		}
		part, err := s.Day(t.Context(), today-1, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.RemoveDay(t.Context(), today-1); err != nil {
			t.Fatal(err)
		}
		if err := insert(t.Context(), part, "held", [][]any{{int64(1 << 30), "late"}}); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("a day that was removed is written: %v", err)
		}
		if _, err := s.Day(t.Context(), today-1, false); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("a day that was removed is found: %v", err)
		}
		if days, err := s.Days(t.Context()); err != nil || !slices.Equal(days, []fanfare.Day{today}) {
			t.Errorf("the days are %v (%v)", days, err)
		}
	})
}
