package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The reference has every metric of the server, and no other.
func TestMetricsAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	s := prepare(t)
	if s.database != "" {
		s.env = append(s.env, "FANFARE_DB_READS="+s.database)
	}
	s.env = append(s.env, "FANFARE_INBOUND=127.0.0.1:0", "FANFARE_INBOUND_DOMAINS=returns.example.org") // its metrics are there with it
	s.start()
	key := into[madeKey](t, s.mustRun("", "dkim", "new", "example.org", "--selector", "first", "--out", filepath.Join(t.TempDir(), "key.pem"), "--json"))
	s.http.must(200, "POST", "/v1/apply", "application/yaml", "service: news\nchannels:\n  mail: {driver: smtp, relay: \"127.0.0.1:9\", from: a@example.org, dkim: ["+key.entry()+"]}\n") // relays and keys have metrics
	reference, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	told := namesIn("(?m)^\\| `(fanfare_[a-z_]+)", string(reference))
	if s.database == "" {
		told = slices.DeleteFunc(told, func(name string) bool { return strings.HasPrefix(name, "fanfare_database_") })
	}
	told = slices.DeleteFunc(told, func(name string) bool { return strings.HasPrefix(name, "fanfare_node") }) // of a cluster: TestTheNodesOfAClusterAreListed
	served := namesIn(`(?m)^(fanfare_[a-z_]+)`, s.http.must(200, "GET", "/metrics", "", ""))
	if len(served) == 0 || !slices.Equal(told, served) {
		t.Errorf("the reference has\n%v\nthe server\n%v", told, served)
	}
}

// namesIn lists the different matches of the group of a pattern.
func namesIn(pattern, text string) []string {
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[match[1]] = true
	}
	return slices.Sorted(maps.Keys(found))
}
