package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

var errOurs = errors.New("no more of this")

func TestATransactionIsKeptAsAWholeOrNotAtAll(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		write(t, day, func(s store.Session) error { return putBlobs(s, []byte("before"), 1) })
		for name, c := range map[string]struct {
			do   func(s store.Session) error
			want error
		}{
			"fn returns an error":       {func(store.Session) error { return errOurs }, errOurs},
			"fn returns a wrapped code": {func(store.Session) error { return fmt.Errorf("late: %w", &fanfare.Error{Code: fanfare.Conflict}) }, nil},
			"a number is there already": {func(s store.Session) error { return putBlobs(s, nil, 4, 1) }, nil},
			"no such statement":         {func(s store.Session) error { return s.Run("no such statement") }, nil},
			"an error of a row": {func(s store.Session) error {
				return s.Each("behind", func(store.Row) error { return errOurs }, int64(0))
			}, errOurs},
		} {
			err := day.Write(t.Context(), func(s store.Session) error {
				if err := putBlobs(s, []byte("after"), 2, 3); err != nil {
					return err
				}
				return c.do(s)
			})
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s: the error is %v, want %v", name, err, c.want)
			}
			if kept := keptNumbers(t, day); !slices.Equal(kept, []int64{1}) {
				t.Fatalf("%s: kept are %v", name, kept)
			}
		}
		write(t, day, func(s store.Session) error { return putBlobs(s, []byte("after"), 2, 3) })
		if kept := keptNumbers(t, day); !slices.Equal(kept, []int64{1, 2, 3}) {
			t.Errorf("kept in the end are %v", kept)
		}
	})
}

func TestAnErrorOfFnKeepsItsCode(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		ours := &fanfare.Error{Code: fanfare.Conflict, Message: "not now"}
		for name, run := range ways(day) {
			err := run(t.Context(), func(store.Session) error { return fmt.Errorf("late: %w", ours) })
			if fanfare.CodeOf(err) != fanfare.Conflict || !errors.Is(err, ours) {
				t.Errorf("%s gave %v", name, err)
			}
		}
	})
}

// ways are the ways to run statements of a part.
func ways(p store.Part) map[string]func(context.Context, func(store.Session) error) error {
	return map[string]func(context.Context, func(store.Session) error) error{"write": p.Write, "erase": p.Erase, "read": p.Read, "snapshot": p.Snapshot}
}

func TestAPanicKeepsNothingAndHoldsUpNobody(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		panicked := func(run func(context.Context, func(store.Session) error) error, fn func(store.Session)) (value any) {
			defer func() { value = recover() }()
			err := run(t.Context(), func(s store.Session) error { fn(s); return nil })
			t.Errorf("it returned %v", err)
			return nil
		}
		for range 10 { // more often than there are connections
			for name, run := range ways(day) {
				if got := panicked(run, func(s store.Session) {
					if name == "write" || name == "erase" {
						if err := putBlobs(s, []byte("no"), 1); err != nil {
							t.Error(err)
						}
					}
					panic(name)
				}); got != name {
					t.Errorf("in %s the panic is %v", name, got)
				}
				panicked(run, func(s store.Session) {
					err := s.Each("behind", func(store.Row) error { panic(name) }, int64(0))
					t.Errorf("after a panic of a row Each returned %v", err)
				})
			}
		}
		write(t, day, func(s store.Session) error { return putBlobs(s, []byte("yes"), 2) })
		if kept := keptNumbers(t, day); !slices.Equal(kept, []int64{2}) {
			t.Errorf("kept are %v", kept)
		}
	})
}

// The end of a context may cut a transaction short or not; what the caller is
// told is what is kept.
func TestACancelledTransactionReportsItsRealResult(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		var want []int64
		for number := range int64(20) {
			ctx, cancel := context.WithCancel(t.Context())
			err := day.Write(ctx, func(s store.Session) error {
				if number%3 == 0 {
					cancel()
				}
				if err := putBlobs(s, []byte("x"), number); err != nil {
					return err
				}
				if number%3 == 1 {
					cancel()
				}
				_, err := numbers(s)
				return err
			})
			cancel()
			switch {
			case err == nil:
				want = append(want, number)
			case number%3 == 2:
				t.Fatalf("with a context that did not end: %v", err)
			}
			if kept := keptNumbers(t, day); !slices.Equal(kept, want) {
				t.Fatalf("kept are %v, and told was %v (%v)", kept, want, err)
			}
		}
	})
}

func TestAnEndedContextEndsAReading(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		write(t, day, func(s store.Session) error { return putBlobs(s, []byte("x"), 1, 2, 3) })
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for name, run := range map[string]func(context.Context, func(store.Session) error) error{"read": day.Read, "snapshot": day.Snapshot} {
			err := run(gone, func(s store.Session) error { _, err := numbers(s); return err })
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s gave %v", name, err)
			}
			if kept := keptNumbers(t, day); len(kept) != 3 {
				t.Errorf("after it there are %v", kept)
			}
		}
	})
}

func TestReadSeesAllThatWasKeptBefore(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		read(t, day, func(s store.Session) error {
			for number := range int64(5) {
				if kept, err := numbers(s); err != nil || len(kept) != int(number) {
					t.Errorf("after %d writes it sees %v (%v)", number, kept, err)
				}
				write(t, day, func(s store.Session) error { return putBlobs(s, []byte("x"), number) })
			}
			return nil
		})
	})
}

func TestATransactionSeesItsOwnWritesAndNobodyElseDoes(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		write(t, day, func(s store.Session) error {
			if err := putBlobs(s, []byte("x"), 1); err != nil {
				return err
			}
			if own, err := numbers(s); err != nil || !slices.Equal(own, []int64{1}) {
				t.Errorf("it sees %v (%v)", own, err)
			}
			if others := keptNumbers(t, day); len(others) != 0 {
				t.Errorf("others see %v", others)
			}
			return nil
		})
	})
}

func TestASnapshotIsOneMomentWhileOthersWrite(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		write(t, day, func(s store.Session) error { return putBlobs(s, []byte("x"), 1) })
		err := day.Snapshot(t.Context(), func(s store.Session) error {
			for number := int64(2); number < 6; number++ {
				seen, err := numbers(s)
				if err != nil {
					return err
				}
				rows, err := attempts(s, 7)
				if err != nil {
					return err
				}
				if !slices.Equal(seen, []int64{1}) || len(rows) != 0 {
					t.Errorf("after %d writes it sees %v and %v", number-2, seen, rows)
				}
				write(t, day, func(s store.Session) error {
					return errors.Join(putBlobs(s, []byte("y"), number), insertAttempts(s, attempt{manifest: 7, position: number}))
				})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if kept := keptNumbers(t, day); len(kept) != 5 {
			t.Errorf("afterwards there are %v", kept)
		}
	})
}

// Each transaction takes the next number and writes a row with it. Concurrent readers see
// numbers without a gap.
func TestWritersOfOnePartWaitForEachOther(t *testing.T) {
	const writers, each = 8, 25
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		var work sync.WaitGroup
		for range writers {
			work.Go(func() {
				for range each {
					err := day.Write(t.Context(), func(s store.Session) error {
						number := int64(-1)
						if err := s.Each("history_new", func(r store.Row) error { number = r.Int64(0); return nil }); err != nil {
							return err
						}
						runtime.Gosched()
						return putBlobs(s, []byte("x"), number)
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { work.Wait(); close(done) }()
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			default:
			}
			for i, number := range keptNumbers(t, day) {
				if number != int64(i) {
					t.Errorf("number %d stands at place %d", number, i)
				}
			}
		}
		if n := len(keptNumbers(t, day)); n != writers*each {
			t.Errorf("%d numbers were given, want %d", n, writers*each)
		}
	})
}

// Erase removes rows as Write does, and an error rolls it back.
func TestAnErasureIsATransaction(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		one := attempt{manifest: 1, position: 2, attempt: 1, text: "Ada moved", address: "ada@example.org"}
		other := attempt{manifest: 1, position: 3, attempt: 1, text: "fine", address: "bob@example.org"}
		write(t, day, func(s store.Session) error { return insertAttempts(s, one, other) })
		forget := func(end error) error {
			return day.Erase(t.Context(), func(s store.Session) error {
				return errors.Join(s.Run("attempts_forget", int64(1), int64(2)), end)
			})
		}
		check := func(want ...attempt) {
			t.Helper()
			read(t, day, func(s store.Session) error {
				if rows, err := attempts(s, 1); err != nil || !slices.Equal(rows, want) {
					t.Errorf("kept are %+v (%v), want %+v", rows, err, want)
				}
				return nil
			})
		}
		if err := forget(errOurs); !errors.Is(err, errOurs) {
			t.Errorf("the error is %v", err)
		}
		check(one, other)
		if err := forget(nil); err != nil {
			t.Fatal(err)
		}
		one.text, one.address = "", ""
		check(one, other)
		if err := day.Scrub(t.Context(), [][]byte{[]byte("ada")}); err != nil {
			t.Error(err)
		}
		check(one, other)
	})
}
