package e2e

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
)

// The reference has every metric of the server, and no other.
func TestMetricsAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	s := serve(t)
	reference, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	names := func(pattern, text string) []string {
		found := map[string]bool{}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found[match[1]] = true
		}
		return slices.Sorted(maps.Keys(found))
	}
	told := names("(?m)^\\| `(fanfare_[a-z_]+)", string(reference))
	served := names(`(?m)^(fanfare_[a-z_]+)`, s.http.must(200, "GET", "/metrics", "", ""))
	if len(served) == 0 || !slices.Equal(told, served) {
		t.Errorf("the reference has\n%v\nthe server\n%v", told, served)
	}
}
