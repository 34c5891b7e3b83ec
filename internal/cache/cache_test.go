package cache

import (
	"errors"
	"fmt"
	"testing"
)

func TestCacheKeepsTheNewestResultsAndNoErrors(t *testing.T) {
	var c Cache[int, string]
	made := 0
	get := func(key int) string {
		t.Helper()
		v, err := c.Get(key, func(key int) (string, error) { made++; return fmt.Sprint(key), nil })
		if err != nil || v != fmt.Sprint(key) {
			t.Fatalf("%d is %q, %v", key, v, err)
		}
		return v
	}
	broken := errors.New("broken")
	if _, err := c.Get(-1, func(int) (string, error) { return "half", broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	get(-1)
	for key := range 3 * Size {
		get(key)
		get(key)
	}
	if want := 1 + 3*Size; made != want {
		t.Errorf("%d look-ups, want %d", made, want)
	}
	if len(c.entries) != Size || len(c.order) != Size {
		t.Errorf("the map has %d entries and the order %d, want %d", len(c.entries), len(c.order), Size)
	}
	made = 0
	for key := 2 * Size; key < 3*Size; key++ {
		get(key)
	}
	if made != 0 {
		t.Errorf("%d of the newest results were looked up again", made)
	}
}
