package storetest_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestADayIsMadeWhenItIsAskedForAndByOneOfManyAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		if _, err := db.Day(t.Context(), today, false); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("a day of which nothing is kept: %v", err)
		}
		if days, err := db.Days(t.Context()); err != nil || len(days) != 0 {
			t.Errorf("asking has made %v (%v)", days, err)
		}
		var work sync.WaitGroup
		for number := range int64(8) {
			work.Go(func() {
				for _, of := range []fanfare.Day{today, today + 1} {
					day, err := db.Day(t.Context(), of, true)
					if err == nil {
						err = day.Write(t.Context(), func(s store.Session) error { return putBlobs(s, []byte("x"), number) })
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		work.Wait()
		for _, of := range []fanfare.Day{today, today + 1} {
			if kept := keptNumbers(t, partOf(t, db, of)); len(kept) != 8 {
				t.Errorf("of 8 who made the day %v there are %v", of, kept)
			}
		}
	})
}

func TestDaysAreListedNewestFirst(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		for _, of := range []fanfare.Day{today, today - 400, today + 1, today - 1, 0} {
			partOf(t, db, of)
		}
		want := []fanfare.Day{today + 1, today, today - 1, today - 400, 0}
		for range 2 {
			if days, err := db.Days(t.Context()); err != nil || !slices.Equal(days, want) {
				t.Errorf("the days are %v (%v), want %v", days, err, want)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = storetest.OpenAt(t, place)
		}
	})
}

func TestPartsShareNothing(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		here, there := partOf(t, db, today), partOf(t, db, today+1)
		write(t, here, func(s store.Session) error {
			if err := putBlobs(s, []byte("here"), 1, 2); err != nil {
				return err
			}
			// One that is open keeps nobody from writing another part.
			write(t, there, func(s store.Session) error { return putBlobs(s, []byte("there"), 1, 3) })
			write(t, db.Control(), func(s store.Session) error { return s.Run("change_seq_set", int64(7)) })
			return nil
		})
		if a, b := keptNumbers(t, here), keptNumbers(t, there); !slices.Equal(a, []int64{1, 2}) || !slices.Equal(b, []int64{1, 3}) {
			t.Errorf("the days have %v and %v", a, b)
		}
		for _, part := range []store.Part{here, there} {
			write(t, part, func(s store.Session) error {
				return s.Each("history_new", func(r store.Row) error {
					if r.Int64(0) != 0 {
						t.Errorf("the first number of a day is %d", r.Int64(0))
					}
					return nil
				})
			})
		}
	})
}

func TestARemovedPartIsGoneForItsHolders(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		held, other := partOf(t, db, today), partOf(t, db, today+1)
		for _, part := range []store.Part{held, other} {
			write(t, part, func(s store.Session) error { return putBlobs(s, []byte("x"), 1) })
		}
		for range 2 { // a second time is no error
			if err := db.RemoveDay(t.Context(), today); err != nil {
				t.Fatal(err)
			}
		}
		for name, run := range ways(held) {
			err := run(t.Context(), func(s store.Session) error { _, err := numbers(s); return err })
			if fanfare.CodeOf(err) != fanfare.NotFound {
				t.Errorf("%s of who holds it: %v", name, err)
			}
		}
		if _, err := db.Day(t.Context(), today, false); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("asked for it: %v", err)
		}
		if days, err := db.Days(t.Context()); err != nil || !slices.Equal(days, []fanfare.Day{today + 1}) {
			t.Errorf("the days are %v (%v)", days, err)
		}
		if kept := keptNumbers(t, other); len(kept) != 1 {
			t.Errorf("the other day has %v", kept)
		}
		if kept := keptNumbers(t, partOf(t, db, today)); len(kept) != 0 {
			t.Errorf("when it is made again it has %v", kept)
		}
	})
}

// Readers and writers of a day that is removed see all of it or nothing, and a day that is made
// again is empty.
func TestADayIsRemovedWhileOthersReadAndWriteIt(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		var work sync.WaitGroup
		var removed atomic.Int64
		gone := func(err error) bool {
			if err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
				t.Error(err)
			}
			return err != nil
		}
		for worker := range int64(4) {
			work.Go(func() {
				for i := range int64(25) {
					number := worker*1000 + i*10
					day, err := db.Day(t.Context(), today, true)
					if gone(err) {
						continue
					}
					err = day.Write(t.Context(), func(s store.Session) error { return putBlobs(s, []byte("x"), number, number+1, number+2) })
					if gone(err) {
						continue
					}
					err = day.Snapshot(t.Context(), func(s store.Session) error {
						list, err := numbers(s)
						if err == nil && len(list)%3 != 0 {
							t.Errorf("%d numbers are there, a part of what was written together", len(list))
						}
						return err
					})
					gone(err)
					if i%8 == worker {
						if err := db.RemoveDay(t.Context(), today); err != nil {
							t.Error(err)
						}
						removed.Add(1)
					}
				}
			})
		}
		work.Wait()
		if removed.Load() == 0 {
			t.Error("it was never removed")
		}
	})
}
