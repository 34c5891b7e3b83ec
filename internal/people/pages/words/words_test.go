package words

import (
	"os"
	"strings"
	"testing"
)

// The reference lists the names and texts that a service can replace.
func TestTheReferenceHasEveryText(t *testing.T) {
	reference, err := os.ReadFile("../../../../docs/reference/page-texts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if line := "| `" + name + "` | " + english[name] + " |\n"; !strings.Contains(string(reference), line) {
			t.Errorf("docs/reference/page-texts.md lacks this line:\n%s", line)
		}
	}
	if is := strings.Count(string(reference), "\n| `"); is != len(Names()) {
		t.Errorf("it has %d texts, of %d", is, len(Names()))
	}
}
