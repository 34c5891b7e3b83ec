package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// A collecting index keeps copies of what it is given, until it fails.
type collecting struct {
	Conditions
	params map[fanfare.RowID]string
	adds   int
	failAt int

	unclear map[fanfare.RowID]bool // not understood
	refused []fanfare.RowID
}

func (c *collecting) Add(_ condition.Key, entries []condition.Entry) error {
	if c.adds++; c.adds == c.failAt {
		return errors.New("no room")
	}
	for _, e := range entries {
		if c.unclear[e.Place] {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "it is not understood"}
		}
	}
	for _, e := range entries {
		c.params[e.Place] = string(e.Params)
	}
	return nil
}

func fillWith(c *collecting, topics, n int) error {
	f := newFilling(c, func(_ condition.Key, place fanfare.RowID, _ error) { c.refused = append(c.refused, place) })
	var buf []byte // used again for each, as the store's is
	for i := range n {
		buf = fmt.Appendf(buf[:0], `{"n":%d}`, i)
		e := condition.Entry{Place: fanfare.RowID(i), Params: json.RawMessage(buf)}
		if err := f.add(condition.Key{Topic: fmt.Sprint(i % topics)}, e); err != nil {
			return errors.Join(err, f.end())
		}
	}
	return f.end()
}

func TestAllThatIsReadIsFilledInAsItWasRead(t *testing.T) {
	const n = 7*loadChunk + 11
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

func TestAFillingEndsAtTheFirstFailure(t *testing.T) {
	for _, failAt := range []int{1, 3, 8} {
		c := &collecting{params: map[fanfare.RowID]string{}, failAt: failAt}
		if err := fillWith(c, 1, 7*loadChunk+11); err == nil {
			t.Errorf("the failure of chunk %d is not told", failAt)
		}
		if c.adds != failAt {
			t.Errorf("%d chunks were given after the failure of %d", c.adds, failAt)
		}
	}
}

// What an older version has taken and this one does not must not keep a server from
// its start.
func TestWhatIsNotUnderstoodAnyMoreIsLeftOutAndTold(t *testing.T) {
	const n = 3*loadChunk + 11
	unclear := []fanfare.RowID{7, loadChunk, n - 1}
	c := &collecting{params: map[fanfare.RowID]string{}, unclear: map[fanfare.RowID]bool{}}
	for _, place := range unclear {
		c.unclear[place] = true
	}
	if err := fillWith(c, 1, n); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.refused, unclear) || len(c.params) != n-len(unclear) {
		t.Errorf("%d of %d are in, and %d were refused", len(c.params), n, c.refused)
	}
}
