package crash

import (
	"strings"
	"testing"
	"time"
)

// The record is read while the capture server writes it, and may end anywhere in
// a line then.
func TestALineThatIsBeingWrittenIsNoArrivalYet(t *testing.T) {
	const first, second = "1\tevt-1\ta@example.org\tm-1\n", "2\tevt-2\tb@example.org\tm-2\n"
	for n := range len(second) + 1 {
		all, err := ReadArrivals(strings.NewReader(first + second[:n]))
		want := 1
		if n == len(second) {
			want = 2
		}
		if err != nil || len(all) != want {
			t.Errorf("with %q written of the second line: %d arrivals, %v", second[:n], len(all), err)
		}
	}
}

func TestADamagedRecordIsRefused(t *testing.T) {
	good := "1000000000\tevt-1\ta@example.org\t<m@x>\n"
	all, err := ReadArrivals(strings.NewReader(good))
	if err != nil || len(all) != 1 || all[0] != (Arrival{time.Unix(1, 0), "evt-1", "a@example.org", "<m@x>"}) {
		t.Errorf("got %v, %v", all, err)
	}
	for _, bad := range []string{"1\tevt-1\ta\n", "x\tevt-1\ta\tm\n", good + "\n"} {
		if _, err := ReadArrivals(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
