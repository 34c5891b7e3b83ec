package sqlite

import (
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store"
)

func TestAnInsertThatIsNoneIsRefused(t *testing.T) {
	p := mustDay(t, openDB(t, t.TempDir()), 5)
	for name, c := range map[string]struct {
		statement string
		values    int
		want      string
	}{
		"a value too few":  {"frozen_insert", 1, "1 values for 2 columns"},
		"a value too many": {"frozen_insert", 3, "3 values for 2 columns"},
		"no INSERT":        {"held_clear", 1, "held_clear"},
		"no statement":     {"unheard of", 1, "unheard of"},
	} {
		err := p.Write(t.Context(), func(s store.Session) error {
			return s.Insert(c.statement, 1, func(_ int, to store.Values) {
				for range c.values {
					to.Int64(1)
				}
			})
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheTupleOfAnInsertIsRepeated(t *testing.T) {
	for query, want := range map[string]string{
		"INSERT INTO t (a, b) VALUES (?, ?)":                      "INSERT OR FAIL INTO t (a, b) VALUES (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?)",
		"INSERT INTO t (a) VALUES (?) ON CONFLICT (a) DO NOTHING": "INSERT OR FAIL INTO t (a) VALUES (?), (?), (?), (?), (?), (?), (?), (?) ON CONFLICT (a) DO NOTHING",
		"INSERT OR REPLACE INTO t (a) VALUES (?)":                 "INSERT OR REPLACE INTO t (a) VALUES (?), (?), (?), (?), (?), (?), (?), (?)",
		"INSERT INTO t (a) VALUES (?1)":                           "",
		"INSERT INTO t (a) VALUES (? + 1)":                        "",
		"INSERT INTO t (a, b) VALUES (?, lower(?))":               "",
		"INSERT INTO t (a) SELECT a FROM u":                       "",
		"UPDATE t SET a = (SELECT 1 FROM (VALUES (?)))":           "",
	} {
		in, ok := newInsert(query)
		if eight := in.queries[slices.Index(insertRows[:], 8)]; ok != (want != "") || ok && eight != want {
			t.Errorf("%s\nbecame %s (%t)", query, eight, ok)
		}
	}
}

// A read of many rows allocates nothing for each.
func TestARowCostsNoMemory(t *testing.T) {
	control := openDB(t, t.TempDir()).Control()
	filters := 0
	allocated := func(more int) float64 {
		err := control.Write(t.Context(), func(s store.Session) error {
			return s.Insert("filters_insert", more, func(_ int, to store.Values) {
				filters++
				to.Int64(int64(filters))
				to.Text("text")
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		b := make([]byte, 8)
		return testing.AllocsPerRun(10, func() {
			err := control.Read(t.Context(), func(s store.Session) error {
				return s.Each("filters", func(r store.Row) error {
					sum += r.Int64(0)
					r.Copy(1, b[:r.Len(1)])
					return nil
				})
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := allocated(10), allocated(1000)
	if many > few+10 {
		t.Errorf("reading 10 rows makes %v allocations, 1010 rows %v", few, many)
	}
}
