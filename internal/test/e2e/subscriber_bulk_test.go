package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// Lines of subscribers are put by themselves and answered in their order, and
// what is exported makes the same people again in an empty service.
func TestSubscribersAreImportedAndExportedAsLines(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	var b strings.Builder
	const n = 2500
	for i := range n {
		fmt.Fprintf(&b, `{"id":"p%d","addresses":[{"kind":"mail","address":"p%d@example.org","label":"home"},{"kind":"mail","address":"p%d@example.com"}],"locale":"de","attributes":{"floor":%d}}`+"\n", i, i, i, i%7)
	}
	b.WriteString(`{"id":"thief","addresses":[{"kind":"mail","address":"new@example.org"},{"kind":"mail","address":"p7@example.com"}]}` + "\n")
	b.WriteString(`{"addresses":[{"kind":"mail","address":"nobody"}]}` + "\n")
	b.WriteString(`{"adresses":[]}` + "\n")
	b.WriteString(`{"addresses":[{"kind":"mail","address":"new@example.org"}]}` + "\n")
	b.WriteString(`{"id":"p7","addresses":[{"kind":"mail","address":"p7@example.org"}]}` + "\n")
	answers := strings.Split(strings.TrimSpace(s.http.must(200, "POST", "/v1/subscribers", lines, b.String())), "\n")
	if len(answers) != n+5 {
		t.Fatalf("%d answers to %d lines", len(answers), n+5)
	}
	for i, answer := range answers[:n] {
		if answer != fmt.Sprintf(`{"id":"p%d","created":true}`, i) {
			t.Fatalf("line %d is answered by %s", i+1, answer)
		}
	}
	for i, want := range []string{`"conflict"`, "not", `adresses`, `"created":true`, `{"id":"p7","created":false}`} {
		if got := answers[n+i]; !strings.Contains(got, want) {
			t.Errorf("line %d is answered by %s, want %s", n+i+1, got, want)
		}
	}
	if sum := into[summary](t, s.http.must(200, "POST", "/v1/subscribers?quiet=true", lines, `{"id":"p7","addresses":[]}`+"\n"+`{"id":"p8","addresses":[{"kind":"mail","address":"p9@example.org"}]}`+"\n")); sum.Created != 0 || sum.Failed != 1 {
		t.Errorf("the summary is %+v", sum)
	}

	_, exported, _ := s.http.send("GET", "/v1/subscribers", "", "", "Accept", lines)
	if got := strings.Count(exported, "\n"); got != n+1 {
		t.Errorf("%d lines are exported, want %d", got, n+1)
	}
	other := *s.http
	other.service = "games"
	other.must(200, "POST", "/v1/apply", yaml, strings.Replace(news(r.addr, ""), "service: news", "service: games", 1))
	if sum := into[summary](t, other.must(200, "POST", "/v1/subscribers?quiet=true", lines, exported)); sum.Created != n+1 || sum.Failed != 0 {
		t.Errorf("imported again: %+v", sum)
	}
	inOrder := func(text string) []string { return slices.Sorted(strings.Lines(text)) } // places differ by service
	if _, again, _ := other.send("GET", "/v1/subscribers", "", "", "Accept", lines); !slices.Equal(inOrder(again), inOrder(exported)) {
		t.Error("what was imported is exported otherwise")
	}
	if status, text, _ := s.http.send("GET", "/v1/subscribers?address=p7@example.org", "", "", "Accept", lines); status != 422 {
		t.Errorf("an export with a filter is answered by %d %s", status, text)
	}

	// The commands do the same.
	file := filepath.Join(t.TempDir(), "people.ndjson")
	s.mustRun("", "export", "subscribers", "--service", "news", "--output", file)
	third := *s.http
	third.service = "films"
	third.must(200, "POST", "/v1/apply", yaml, strings.Replace(news(r.addr, ""), "service: news", "service: films", 1))
	if out := s.mustRun("", "import", "subscribers", file, "--service", "films"); !strings.Contains(out, "2,501 created, 0 updated, 0 failed") {
		t.Errorf("the import says %s", out)
	}
	if ran := s.run(`{"id":"x","addresses":[{"kind":"fax","address":"1"}]}`, "import", "subscribers", "-", "--service", "films"); ran.code != 2 {
		t.Errorf("a bad line ended with %d: %s", ran.code, ran.err)
	}
}
