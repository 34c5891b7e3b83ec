package harness

import (
	"strings"
	"testing"
)

func TestTheLastOutputOfACounterIsRead(t *testing.T) {
	said := readLastOutput(strings.NewReader(strings.Repeat("sess=    1 quit=    0 mesg=    7\r", 1000) + "sess=   50 quit=   50 mesg= 1234\r"))
	all := mailCounter.FindAllStringSubmatch(said, -1)
	if len(all) == 0 || all[len(all)-1][1] != "1234" {
		t.Errorf("got %q", said)
	}
}
