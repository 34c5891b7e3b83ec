package indexload

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// A collecting index records the entries that it gets, until it fails.
type collecting struct {
	params map[fanfare.RowID]string
	adds   int
	failAt int

	invalid map[fanfare.RowID]bool // refused as invalid
	refused []fanfare.RowID
}

func (c *collecting) Add(_ condition.Key, entries []condition.Entry) error {
	if c.adds++; c.adds == c.failAt {
		return errors.New("out of memory")
	}
	for _, e := range entries {
		if c.invalid[e.Place] {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "invalid condition"}
		}
	}
	for _, e := range entries {
		c.params[e.Place] = string(e.Params)
	}
	return nil
}

func fillWith(c *collecting, topics, n int) error {
	f := New(c.Add, func(_ condition.Key, place fanfare.RowID, _ error) { c.refused = append(c.refused, place) })
	var buf []byte // reused for each entry, as the store does
	for i := range n {
		buf = fmt.Appendf(buf[:0], `{"n":%d}`, i)
		e := condition.Entry{Place: fanfare.RowID(i), Params: json.RawMessage(buf)}
		if err := f.Add(condition.Key{Topic: fmt.Sprint(i % topics)}, e); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

func TestLoaderInsertsAllEntriesUnchanged(t *testing.T) {
	const n = 7*chunkSize + 11
	for _, topics := range []int{1, 5, 200} {
		c := &collecting{params: map[fanfare.RowID]string{}}
		if err := fillWith(c, topics, n); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if want := fmt.Sprintf(`{"n":%d}`, i); c.params[fanfare.RowID(i)] != want {
				t.Fatalf("%d topics: entry %d has %q", topics, i, c.params[fanfare.RowID(i)])
			}
		}
	}
}

func TestLoaderStopsAtTheFirstFailure(t *testing.T) {
	for _, failAt := range []int{1, 3, 8} {
		c := &collecting{params: map[fanfare.RowID]string{}, failAt: failAt}
		if err := fillWith(c, 1, 7*chunkSize+11); err == nil {
			t.Errorf("the failure of chunk %d was not returned", failAt)
		}
		if c.adds != failAt {
			t.Errorf("%d chunks were inserted, the failure was at %d", c.adds, failAt)
		}
	}
}

// TestLoaderLeavesOutInvalidEntries makes sure that a server starts with conditions that an older
// version accepted and this version does not.
func TestLoaderLeavesOutInvalidEntries(t *testing.T) {
	const n = 3*chunkSize + 11
	invalid := []fanfare.RowID{7, chunkSize, n - 1}
	c := &collecting{params: map[fanfare.RowID]string{}, invalid: map[fanfare.RowID]bool{}}
	for _, place := range invalid {
		c.invalid[place] = true
	}
	if err := fillWith(c, 1, n); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.refused, invalid) || len(c.params) != n-len(invalid) {
		t.Errorf("%d of %d entries are in the index, refused: %d", len(c.params), n, c.refused)
	}
}
