package storetest_test

import (
	"testing"

	"fanfare.dev/fanfare/internal/store"
)

func TestAStatementWithinTheRowsOfAnotherIsRefused(t *testing.T) {
	onEachDay(t, func(t *testing.T, _ store.Database, day store.Part) {
		write(t, day, func(s store.Session) error { return putBlobs(s, []byte("x"), 1, 2, 3) })
		none := func(store.Row) error { return nil }
		inner := map[string]func(s store.Session) error{
			"Each":   func(s store.Session) error { return s.Each("behind", none, int64(0)) },
			"itself": func(s store.Session) error { return s.Each("manifests_of_event", none, int64(0), int64(9)) },
			"EachOf": func(s store.Session) error {
				return s.EachOf("manifest", 1, func(int) []any { return []any{int64(1)} }, func(int, store.Row) error { return nil })
			},
			"Run":    func(s store.Session) error { return s.Run("held_clear") },
			"Insert": func(s store.Session) error { return putBlobs(s, []byte("x"), 7) },
		}
		for way, run := range ways(day) {
			err := run(t.Context(), func(s store.Session) error {
				for name, nested := range inner {
					visited := 0
					err := s.Each("manifests_of_event", func(store.Row) error {
						visited++
						if nested(s) == nil {
							t.Errorf("%s: %s within Each is not refused", way, name)
							return errOurs // it may have begun the rows anew
						}
						return nil
					}, int64(0), int64(9))
					if err != nil || visited != 3 {
						t.Errorf("%s: around a refused %s there are %d rows (%v)", way, name, visited, err)
					}
				}
				list, err := numbers(s)
				if len(list) != 3 {
					t.Errorf("%s: afterwards it reads %v", way, list)
				}
				return err
			})
			if err != nil {
				t.Errorf("%s: %v", way, err)
			}
		}
	})
}
