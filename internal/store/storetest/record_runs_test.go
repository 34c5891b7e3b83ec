package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// TestARunThatACrashLeftHalfWrittenIsNotRead writes blocks of a run that is not
// listed, as a kill between two transactions leaves them.
func TestARunThatACrashLeftHalfWrittenIsNotRead(t *testing.T) {
	onEachPast(t, 3, func(t *testing.T, p *past) {
		for range 5 {
			freeze(t, p.Store, p.invent(8))
		}
		half := int64(-1)
		write(t, p.day, func(in store.Session) error {
			return in.Each("history_new", func(r store.Row) error { half = r.Int64(0); return nil })
		})
		write(t, p.day, func(in store.Session) error {
			return in.Insert("history_insert", 3*200, func(i int, to store.Values) {
				to.Int64(int64(i % 3)) // the kind
				to.Int64(half)
				to.Int64(int64(i)) // the first key: those of people, too
				to.Bytes([]byte{byte(i), 9})
			})
		})
		listed := func() (runs []int64) {
			read(t, p.day, func(in store.Session) error {
				return in.Each("history_segments", func(r store.Row) error { runs = append(runs, r.Int64(0)); return nil })
			})
			return runs
		}
		p.check("before the next run", 0)
		p.index()
		p.check("after it", 0)
		if runs := listed(); !slices.Contains(runs, half) || len(runs) != 2 {
			t.Errorf("run %d is left over, and there are %v", half, runs)
		}
		if err := p.SweepHistory(t.Context(), fanfare.DayOf(noon)); err != nil {
			t.Fatal(err)
		}
		if runs := listed(); slices.Contains(runs, half) || len(runs) != 1 {
			t.Errorf("run %d is left over still: %v", half, runs)
		}
		p.check("after they are swept", 0)
	})
}

// refusing is a database that does not take every write.
type refusing struct {
	store.Database
	refuses func() bool
}

func (r refusing) Day(ctx context.Context, of fanfare.Day, create bool) (store.Part, error) {
	part, err := r.Database.Day(ctx, of, create)
	return refusingPart{part, r.refuses}, err
}

type refusingPart struct {
	store.Part
	refuses func() bool
}

func (r refusingPart) Write(ctx context.Context, fn func(store.Session) error) error {
	if r.refuses() {
		return errRefused
	}
	return r.Part.Write(ctx, fn)
}

var errRefused = errors.New("the disk is full, for some")

// TestRunsThatCannotBeWrittenDoNotGather has every third write fail, which no run
// and no merge is written under.
func TestRunsThatCannotBeWrittenDoNotGather(t *testing.T) {
	onEachPast(t, 5, func(t *testing.T, p *past) {
		one := func() {
			freeze(t, p.Store, p.invent(8))
			if _, err := p.IndexHistory(t.Context(), fanfare.DayOf(noon)); err != nil {
				t.Fatal(err)
			}
		}
		for range 30 { // so that there is something to merge
			one()
		}
		freeze(t, p.Store, p.invent(8))
		segments := func() (n int) {
			read(t, p.day, func(in store.Session) error {
				return in.Each("history_segments", func(store.Row) error { n++; return nil })
			})
			return n
		}
		before, writes := segments(), 0
		half := deliveries.New(refusing{p.db, func() bool { writes++; return writes%3 == 0 }})
		fail := func(do func() error) {
			for try := range 20 {
				if err := do(); !errors.Is(err, errRefused) {
					t.Fatalf("try %d: got %v", try, err)
				}
			}
			if n := segments(); n > before+1 {
				t.Errorf("%d runs are left over", n-before)
			}
		}
		fail(func() error { _, err := half.IndexHistory(t.Context(), fanfare.DayOf(noon)); return err })
		p.check("beside what is left over", 0)
		one()
		before = segments()
		fail(func() error { _, err := half.MergeHistory(t.Context(), fanfare.DayOf(noon)); return err })
		p.check("in the end", 0)
	})
}

// TestRunsOfAnySizeMergeUntilFewAreLeft has runs that differ in size, as a busy
// day leaves them, and looks at how many a look-up meets.
func TestRunsOfAnySizeMergeUntilFewAreLeft(t *testing.T) {
	onEachPast(t, 4, func(t *testing.T, p *past) {
		for range 130 {
			for range 1 + p.random.IntN(9) {
				freeze(t, p.Store, p.invent(3))
			}
			p.index()
		}
		p.check("in the end", 0)
		var runs []int64
		byLevel := map[int]int{} // the digits of the size
		read(t, p.day, func(in store.Session) error {
			return in.Each("history_runs", func(r store.Row) error {
				runs = append(runs, r.Int64(1))
				byLevel[len(fmt.Sprint(r.Int64(1)))]++
				return nil
			})
		})
		for level, n := range byLevel {
			if n >= 10 {
				t.Errorf("%d runs of %d digits are left: %v", n, level, runs)
			}
		}
		if len(byLevel) < 2 || len(runs) > 30 {
			t.Errorf("%d runs on %d levels", len(runs), len(byLevel))
		}
	})
}

// TestSomebodyWithMoreEventsThanABlockHoldsIsFound has one person in every event
// and another beside.
func TestSomebodyWithMoreEventsThanABlockHoldsIsFound(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		always, beside := fanfare.NewRowID(0, 0), fanfare.NewRowID(0, 1)
		var events []*fanfare.MatchResult
		const n = 1024 + 512 // a block has 1024 pairs
		for i := range n {
			size := 1
			if i == n/2 {
				size = 2
			}
			events = append(events, frozenEvent(uint64(i+1), noon, size))
		}
		freeze(t, s, events...)
		for _, when := range []string{"in no run", "in a run"} {
			if got, err := s.History(t.Context(), fanfare.DayOf(noon), always); err != nil || len(got) != n || got[0] != events[n-1].Posted.Seq || got[n-1] != events[0].Posted.Seq {
				t.Errorf("%s: %d events (%v), want %d", when, len(got), err, n)
			}
			if got, err := s.History(t.Context(), fanfare.DayOf(noon), beside); err != nil || len(got) != 1 || got[0] != events[n/2].Posted.Seq {
				t.Errorf("%s: the other has %v (%v)", when, got, err)
			}
			if covered, err := s.IndexHistory(t.Context(), fanfare.DayOf(noon)); err != nil || when == "in no run" && covered != n {
				t.Errorf("%d events were indexed (%v)", covered, err)
			}
		}
	})
}

// More events than one statement reads are in the run, in one call.
func TestARunIsReadInPieces(t *testing.T) {
	onEachRecord(t, func(t *testing.T, s *deliveries.Store) {
		var events []*fanfare.MatchResult
		for stream := range uint64(2*256 + 10) {
			events = append(events, frozenEvent(stream+1, noon, 1))
		}
		freeze(t, s, events...)
		day := fanfare.DayOf(noon)
		if n, err := s.IndexHistory(t.Context(), day); err != nil || n != len(events) {
			t.Errorf("%d events were indexed (%v), want %d", n, err, len(events))
		}
		if n, err := s.IndexHistory(t.Context(), day); err != nil || n != 0 {
			t.Errorf("then %d (%v)", n, err)
		}
		if lag, err := s.HistoryLag(t.Context(), day); err != nil || lag != 0 {
			t.Errorf("%d are in no run (%v)", lag, err)
		}
	})
}
