package storetest_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestARowFunctionsErrorEndsTheStatementAndTheSessionGoesOn(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		write(t, day, func(s store.Session) error { return putBlobs(s, []byte("x"), 1, 2, 3) })
		for name, run := range ways(day) {
			err := run(t.Context(), func(s store.Session) error {
				for range 3 {
					visited := 0
					err := s.Each("manifests_of_event", func(store.Row) error { visited++; return errOurs }, int64(0), int64(9))
					if !errors.Is(err, errOurs) || visited != 1 {
						t.Errorf("%s: Each visits %d rows and returns %v", name, visited, err)
					}
					visited = 0
					err = s.EachOf("manifest", 3, func(i int) []any { return []any{int64(i + 1)} }, func(i int, _ store.Row) error {
						visited++
						if i == 1 {
							return errOurs
						}
						return nil
					})
					if !errors.Is(err, errOurs) || visited != 2 {
						t.Errorf("%s: EachOf visits %d rows and returns %v", name, visited, err)
					}
				}
				if list, err := numbers(s); err != nil || len(list) < 3 {
					t.Errorf("%s: afterwards it reads %v (%v)", name, list, err)
				}
				if name == "write" {
					return putBlobs(s, []byte("x"), 4)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if kept := keptNumbers(t, day); !slices.Equal(kept, []int64{1, 2, 3, 4}) {
			t.Errorf("kept are %v", kept)
		}
	})
}

func TestNothingIsWrittenWhereOneReads(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		for name, run := range map[string]func(func(store.Session) error) error{
			"read":     func(fn func(store.Session) error) error { return day.Read(t.Context(), fn) },
			"snapshot": func(fn func(store.Session) error) error { return day.Snapshot(t.Context(), fn) },
		} {
			err := run(func(s store.Session) error {
				if err := putBlobs(s, []byte("x"), 1); err != nil {
					return err
				}
				_, err := numbers(s) // where the error may come instead
				return err
			})
			if err == nil {
				t.Errorf("%s took a row", name)
			}
		}
		if kept := keptNumbers(t, day); len(kept) != 0 {
			t.Errorf("kept are %v", kept)
		}
	})
}

func TestAsManyRowsAsAreGivenAreInserted(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		for _, n := range []int{0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 72, 105, 1000, 10_000} {
			manifest := int64(n)
			rows := make([]attempt, n)
			for i := range rows {
				rows[i] = attempt{manifest, int64(i), 1, 2, -3, math.MaxInt64 - int64(i), math.MinInt64 + int64(i),
					fmt.Sprint("text ", i), strings.Repeat("r", i%5), "é"}
			}
			shuffled := slices.Clone(rows)
			rand.New(rand.NewPCG(uint64(n), 0)).Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			write(t, day, func(s store.Session) error { return insertAttempts(s, shuffled...) })
			read(t, day, func(s store.Session) error {
				got, err := attempts(s, manifest)
				if err != nil || !slices.Equal(got, rows) {
					t.Errorf("of %d rows %d came back, or they differ (%v)", n, len(got), err)
				}
				return nil
			})
		}
	})
}

func TestAnInsertThatFailsAtOneRowKeepsNone(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		write(t, day, func(s store.Session) error { return putBlobs(s, []byte("x"), 500) })
		for _, at := range []int{0, 40, 99} {
			many := make([]int64, 100)
			for i := range many {
				many[i] = int64(1000 + i)
			}
			many[at] = 500
			if err := day.Write(t.Context(), func(s store.Session) error { return putBlobs(s, []byte("y"), many...) }); err == nil {
				t.Errorf("number %d of a hundred is there already, and it is no error", at)
			}
			if kept := keptNumbers(t, day); !slices.Equal(kept, []int64{500}) {
				t.Errorf("kept are %v", kept)
			}
		}
	})
}

func TestEachSetOfArgumentsHasItsRows(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		write(t, day, func(s store.Session) error {
			for number := range int64(300) {
				if number%3 == 0 {
					continue // those find nothing
				}
				if err := putBlobs(s, fmt.Append(nil, number), number); err != nil {
					return err
				}
			}
			return nil
		})
		for name, run := range ways(day) {
			for _, n := range []int{0, 1, 2, 100, 1000} {
				asked := make([]int64, n)
				random := rand.New(rand.NewPCG(uint64(n), 1))
				var want []string
				for i := range asked {
					asked[i] = random.Int64N(300)
					if asked[i]%3 != 0 {
						want = append(want, fmt.Sprint(i, " ", asked[i]))
					}
				}
				var got []string
				err := run(t.Context(), func(s store.Session) error {
					got = nil
					return s.EachOf("manifest", n, func(i int) []any { return []any{asked[i]} }, func(i int, r store.Row) error {
						got = append(got, fmt.Sprint(i, " ", string(r.Bytes(0))))
						return nil
					})
				})
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s: %d sets have the rows %v (%v), want %v", name, n, got, err, want)
				}
			}
		}
		read(t, day, func(s store.Session) error { // sets with several rows, and with none
			var got []string
			err := s.EachOf("manifests_of_event", 4, func(i int) []any { return []any{int64(3 * i), int64(3*i + 3*(i%2))} }, func(i int, r store.Row) error {
				got = append(got, fmt.Sprint(i, " ", r.Int64(0), " ", r.Text(1)))
				return nil
			})
			if want := []string{"1 4 4", "1 5 5", "3 10 10", "3 11 11"}; !slices.Equal(got, want) {
				t.Errorf("the rows are %v, want %v", got, want)
			}
			return err
		})
	})
}

func TestRowsComeInTheOrderOfTheStatement(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		var want []int64
		random := rand.New(rand.NewPCG(1, 2))
		write(t, day, func(s store.Session) error {
			for range 2000 {
				want = append(want, random.Int64N(1<<62))
			}
			return putBlobs(s, []byte("x"), want...)
		})
		slices.Sort(want)
		if got := keptNumbers(t, day); !slices.Equal(got, want) {
			t.Errorf("%d numbers came, not in their order or not the same", len(got))
		}
	})
}

func TestBytesComeBackAsTheyWere(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		day := partOf(t, db, today)
		large := make([]byte, 16<<20)
		rand.NewChaCha8([32]byte{1}).Read(large)
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		blobs := [][]byte{nil, {}, {0}, every, []byte("\xff\xfe"), bytes.Repeat([]byte{0}, 100_000), large}
		for i, blob := range blobs {
			write(t, day, func(s store.Session) error { return putBlobs(s, blob, int64(i)) })
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		read(t, partOf(t, storetest.OpenAt(t, place), today), func(s store.Session) error {
			for i, blob := range blobs {
				seen := false
				err := s.Each("manifest", func(r store.Row) error {
					seen = true
					copied := make([]byte, r.Len(0))
					r.Copy(0, copied)
					if r.IsNull(0) || r.Len(0) != len(blob) || !bytes.Equal(r.Bytes(0), blob) || !bytes.Equal(copied, blob) {
						t.Errorf("of blob %d with %d bytes came %d, NULL: %v", i, len(blob), r.Len(0), r.IsNull(0))
					}
					return nil
				}, int64(i))
				if err != nil || !seen {
					t.Errorf("blob %d did not come (%v)", i, err)
				}
			}
			return nil
		})
	})
}

func TestNumbersOf64BitsComeBack(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		for i, n := range []int64{0, 1, -1, math.MaxInt32, math.MinInt32, math.MaxUint32, 1<<53 + 1, math.MaxInt64, math.MinInt64} {
			row := attempt{manifest: math.MaxInt64 - int64(i), at: n, next: n}
			write(t, day, func(s store.Session) error { return insertAttempts(s, row) })
			read(t, day, func(s store.Session) error {
				if got, err := attempts(s, row.manifest); err != nil || !slices.Equal(got, []attempt{row}) {
					t.Errorf("%d came back as %+v (%v)", n, got, err)
				}
				return nil
			})
		}
	})
}

func TestNullDiffersFromEmpty(t *testing.T) {
	onEach(t, func(t *testing.T, place string) {
		db := storetest.OpenAt(t, place)
		control := db.Control()
		write(t, control, func(s store.Session) error {
			return s.Insert("subscribers_insert", 3, func(i int, to store.Values) {
				to.Int64(int64(i + 1))
				to.Int64(1)
				to.Int64(1)
				to.Text("") // an address may not be NULL
				for range 4 {
					switch i {
					case 0:
						to.Null()
					case 1:
						to.Text("")
					default:
						to.Text("x")
					}
				}
			})
		})
		read(t, control, func(s store.Session) error {
			at := 0
			err := s.Each("subscribers_between", func(r store.Row) error {
				for column := 4; column < 8; column++ {
					want := []string{"", "", "x"}[at]
					if r.IsNull(column) != (at == 0) || r.Text(column) != want || r.Len(column) != len(want) || len(r.Bytes(column)) != len(want) {
						t.Errorf("row %d, column %d: NULL %v, %q, %d bytes", at, column, r.IsNull(column), r.Text(column), r.Len(column))
					}
				}
				if r.IsNull(3) || !r.IsNull(8) || r.Int64(8) != 0 {
					t.Errorf("row %d: an empty text is NULL: %v; a number that was not given is NULL: %v, and %d", at, r.IsNull(3), r.IsNull(8), r.Int64(8))
				}
				at++
				return nil
			}, int64(1), int64(9), int64(9))
			if at != 3 {
				t.Errorf("%d rows came", at)
			}
			return err
		})
		read(t, partOf(t, db, today), func(s store.Session) error {
			rows := 0
			err := s.Each("due_next", func(r store.Row) error {
				rows++
				if !r.IsNull(0) || r.Int64(0) != 0 {
					t.Errorf("the least of nothing is %d, NULL: %v", r.Int64(0), r.IsNull(0))
				}
				return nil
			})
			if rows != 1 {
				t.Errorf("the least of nothing has %d rows", rows)
			}
			return err
		})
	})
}
