package cadence

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Each row of the page that shows a cadence is one that is read, and each row with
// times is as it says.
func TestThePageAboutDigestsIsTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "how-to", "digests.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("^\\| `(.*?)` \\| (.*?) \\|(?: (\\S*) \\| (\\S*) \\|)?$")
	shown, timed := 0, 0
	for _, line := range strings.Split(string(text), "\n") {
		found := row.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		shown++
		c, err := Parse(found[1])
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if found[3] == "" {
			continue
		}
		timed++
		name := found[2]
		if c.Zone() != "" {
			name = c.Zone()
		}
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		after, err := time.Parse(time.RFC3339, found[3])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if due := c.Next(after, zone).Format(time.RFC3339); due != found[4] {
			t.Errorf("%s: it is due %s", line, due)
		}
	}
	if shown < 15 || timed < 10 {
		t.Errorf("the page has %d cadences, and of %d when they are due", shown, timed)
	}
}
