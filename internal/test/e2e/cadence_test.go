package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

// waitingNews is the document with a topic of which something may wait.
func waitingNews(relay string) string {
	return strings.Replace(news(relay, ""), "    template: story\n", "    template: story\n    key: place\n    digest: {template: stories}\n    cadence: daily 08:00\n", 1) +
		"  stories:\n    subject: \"{{ count }} stories\"\n    text: \"{% for item in items %}{{ item.event.title }} {% endfor %}\"\n"
}

// A cadence is put, shown, listed, explained, exported and imported, by all ways there are.
func TestACadenceGoesInAndOutByAllWays(t *testing.T) {
	t.Parallel()
	s, other := serve(t), serve(t)
	for _, one := range []*server{s, other} {
		one.http.must(200, "POST", "/v1/apply", yaml, waitingNews("127.0.0.1:1"))
	}
	if topic := s.mustRun("", "topic", "get", "story"); !strings.Contains(topic, `"daily 08:00"`) {
		t.Errorf("the topic is shown as\n%s", topic)
	}

	s.http.subscribe(`{"id":"default","topic":"story","channel":"email","to":"a@example.org"}`)
	s.http.must(201, "PUT", "/v1/subscriptions/path", "", `{"topic":"story","channel":"email","to":"b@example.org","cadence":"Window 60s"}`)
	s.http.subscribe(`{"id":"line","topic":"story","channel":"email","to":"c@example.org","cadence":"weekly sat 09:30 of state in Asia/Tokyo","time_zone":"Europe/London"}`)
	table := filepath.Join(t.TempDir(), "people.csv")
	if err := os.WriteFile(table, []byte("id,to,cadence\nrow,d@example.org,cron 0 8 * * MON-FRI\nonce,e@example.org,immediate\nbad,f@example.org,hourly\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ran := s.run("", "import", "subscriptions", table, "--topic", "story", "--channel", "email"); ran.code != 2 {
		t.Fatalf("an import with a bad line ended with %d: %s", ran.code, ran.err)
	}
	if bad, err := os.ReadFile(table + ".errors"); err != nil || !strings.Contains(string(bad), "hourly") || strings.Contains(string(bad), "row") {
		t.Errorf("bad are %q, %v", bad, err)
	}
	want := map[string]string{"default": "daily 08:00", "path": "window 1m", "line": "weekly saturday 09:30 of state in Asia/Tokyo", "row": "cron 0 8 * * mon-fri", "once": "immediate"}
	for id, cadence := range want {
		var is struct{ Cadence string }
		if is = into[struct{ Cadence string }](t, s.http.must(200, "GET", "/v1/subscriptions/"+id, "", "")); is.Cadence != cadence {
			t.Errorf("%s has %q, want %q", id, is.Cadence, cadence)
		}
		if list := s.mustRun("", "subscription", "list"); !strings.Contains(list, cadence) {
			t.Errorf("%q is not in the list\n%s", cadence, list)
		}
	}

	sorted := func(one *server) []string {
		all := strings.Split(strings.TrimSpace(one.mustRun("", "export", "subscriptions")), "\n")
		slices.Sort(all)
		return all
	}
	for _, format := range []string{"ndjson", "csv"} {
		file := filepath.Join(t.TempDir(), "people."+format)
		s.mustRun("", "export", "subscriptions", "--format", format, "--output", file)
		other.mustRun("", "import", "subscriptions", file)
		if is, was := sorted(other), sorted(s); !slices.Equal(is, was) || len(was) != len(want) {
			t.Errorf("by %s: %s\nwant %s", format, is, was)
		}
	}

	if e := into[fanfare.Explanation](t, s.mustRun(`{"title":"x"}`, "explain", "--json", "row", "-")); e.Cadence != want["row"] {
		t.Errorf("explained with %q", e.Cadence)
	}
	if text := s.mustRun(`{"title":"x"}`, "explain", "row", "-"); !strings.Contains(text, want["row"]) {
		t.Errorf("the cadence is not in\n%s", text)
	}
	event := s.http.publish(`{"title":"x","place":"Graz"}`)
	s.frozen(event)
	for id, check := range map[string]string{"line": "state", "default": "digest"} {
		e := into[fanfare.Explanation](t, s.mustRun("", "explain", "--json", id, event))
		if last := e.Checks[len(e.Checks)-1]; !e.Wanted || last.Name != check || !strings.Contains(last.Detail, strings.TrimSuffix(want[id], " in Asia/Tokyo")) {
			t.Errorf("%s is explained with %+v", id, e)
		}
	}
	refused := s.http.refused(422, "POST", "/v1/subscriptions", "", `{"topic":"story","channel":"email","to":"g@example.org","cadence":"daily 8:00"}`)
	if refused.Pointer != "/cadence" || !strings.Contains(refused.Hint, "08:00") {
		t.Errorf("refused with %+v", refused)
	}
}
