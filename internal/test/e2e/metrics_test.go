package e2e

import (
	"maps"
	"net/http"
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
	s.env = append(s.env, "FANFARE_INBOUND=127.0.0.1:0", "FANFARE_INBOUND_DOMAINS=returns.example.org", "FANFARE_IMAP_LISTEN=127.0.0.1:0", "FANFARE_LMTP_LISTEN=127.0.0.1:0") // its metrics are there with it
	s.start()
	key := into[madeKey](t, s.mustRun("", "dkim", "new", "example.org", "--selector", "first", "--out", filepath.Join(t.TempDir(), "key.pem"), "--json"))
	s.http.must(200, "POST", "/v1/apply", "application/yaml", "service: news\nchannels:\n  mail: {driver: smtp, relay: \"127.0.0.1:9\", from: a@example.org, dkim: ["+key.entry()+"]}\nworkers:\n  pricing: {}\n") // relays, keys and workers have metrics
	s.http.must(201, "POST", "/v1/sessions", "application/json", `{"worker":"pricing"}`)
	s.mustRun("", "mailbox", "create", "reader@example.org")
	s.opened("reader@example.org") // commands and calls have metrics
	callJMAP(t, s, "reader@example.org")
	reference, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	told := namesIn("(?m)^\\| `(fanfare_[a-z_]+)", string(reference))
	if s.database == "" {
		told = slices.DeleteFunc(told, func(name string) bool { return strings.HasPrefix(name, "fanfare_database_") })
	}
	told = slices.DeleteFunc(told, func(name string) bool { return strings.HasPrefix(name, "fanfare_node") }) // of a cluster: TestTheNodesOfAClusterAreListed
	served := namesIn(`(?m)^# TYPE (fanfare_[a-z_]+)`, s.http.must(200, "GET", "/metrics", "", ""))
	if len(served) == 0 || !slices.Equal(told, served) {
		t.Errorf("the reference has\n%v\nthe server\n%v", told, served)
	}
}

// callJMAP makes one method call with a new app password of an address.
func callJMAP(t *testing.T, s *server, address string) {
	t.Helper()
	made := into[struct{ Password string }](t, s.http.must(201, "POST", "/v1/mailboxes/"+address+"/app-passwords", plain, `{"name":"program"}`))
	request, err := http.NewRequestWithContext(t.Context(), "POST", s.http.url+"/jmap/api", strings.NewReader(`{"using":["urn:ietf:params:jmap:core"],"methodCalls":[["Core/echo",{},"0"]]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(address, made.Password)
	request.Header.Set("Content-Type", plain)
	response, err := s.http.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != 200 {
		t.Errorf("a call of JMAP: %s", response.Status)
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
