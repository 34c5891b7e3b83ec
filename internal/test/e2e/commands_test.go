package e2e

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Bad lines of an import are named and do not stop the good ones.
func TestImportTakesTheGoodLinesAndNamesTheBad(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	ndjson := `{"topic":"story","channel":"email","to":"one@example.org"}

{"topic":"story","channel":"email","to":"nobody"}
{"topic":"story","channel":"email","to":"two@example.org","filter":"event.lvel > 1"}
{"topic":"story","channel":"email",
{"topic":"story","channel":"email","to":"three@example.org","rule":"level","params":{"from":1},"data":{"why":"x"}}`
	ran := s.run("", "import", "subscriptions", write(t, "people.ndjson", ndjson), "--json")
	sum := into[summary](t, ran.out)
	if ran.code != 2 || sum.Created != 2 || sum.Failed != 3 {
		t.Errorf("ended with %d: %s%s", ran.code, ran.out, ran.err)
	}
	for i, want := range []struct {
		line    int
		pointer string
	}{{3, "/to"}, {4, "/filter"}, {5, ""}} {
		if i >= len(sum.Errors) || sum.Errors[i].Line != want.line || sum.Errors[i].Error.Pointer != want.pointer {
			t.Fatalf("bad lines are %+v, want line %d, %s", sum.Errors, want.line, want.pointer)
		}
	}
	for _, want := range []string{"line 3", "/to", "line 4", "lvel", "line 5"} {
		if !strings.Contains(ran.err, want) {
			t.Errorf("%q is not in %s", want, ran.err)
		}
	}
	// Again: the same ones.
	if again := into[summary](t, s.run("", "import", "subscriptions", write(t, "people.ndjson", ndjson), "--json").out); again.Created != 0 || again.Updated != 2 {
		t.Errorf("the second time: %+v", again)
	}

	table := "\ufeffid,to,rule,params.from,params.place,data.why,locale\n" +
		"c1,four@example.org,level,1,,\"because\nof this\",de-AT\n" +
		"c2,\"five@example.org\",near,,Vienna,,\n" +
		"c3,nobody,level,1,,,\n" +
		"c4,six@example.org,level,high,,,\n"
	ran = s.run("", "import", "subscriptions", write(t, "people.csv", table), "--topic", "story", "--channel", "email", "--json")
	sum = into[summary](t, ran.out)
	if ran.code != 2 || sum.Created != 2 || sum.Failed != 2 || sum.Errors[0].Line != 5 || sum.Errors[1].Line != 6 || sum.Errors[1].Error.Pointer != "/params/from" {
		t.Errorf("ended with %d: %s%s", ran.code, ran.out, ran.err)
	}
	for _, bad := range []struct{ table, want string }{
		{"to,fitler\na@example.org,x\n", "fitler"}, {"", "empty"}, {"to,to\n", "duplicate column"}, {"to,topic\n\"a@example.org,story\n", "line"},
	} {
		if ran := s.run("", "import", "subscriptions", write(t, "bad.csv", bad.table), "--channel", "email"); ran.code != 1 || !strings.Contains(ran.err, bad.want) {
			t.Errorf("the table %q ended with %d: %s%s", bad.table, ran.code, ran.out, ran.err)
		}
	}
	if ran := s.run("", "import", "subscriptions", filepath.Join(t.TempDir(), "none.csv")); ran.code != 1 {
		t.Errorf("a missing file ended with %d: %s", ran.code, ran.err)
	}
	out := s.mustRun(`{"topic":"story","channel":"email","to":"seven@example.org"}`, "import", "subscriptions", "-")
	if !strings.Contains(out, "1 created") {
		t.Errorf("from standard input: %s", out)
	}
	s.http.completed(s.http.publish(`{"title":"x","level":2,"place":"Vienna"}`))
	r.only("one@example.org", "three@example.org", "four@example.org", "five@example.org", "seven@example.org")
}

func TestPublishAndTraceByCommand(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("a@example.org")
	events := `{"title":"one"}
{"title":2}
not JSON
{"title":"three"}
{"title":"one"}
`
	ran := s.run(events, "publish", "story", "-", "--id-field", "title", "--wait", "--json")
	out := into[struct {
		summary
		First, Last string
		Deliveries  map[string]int
	}](t, ran.out)
	if ran.code != 2 || out.Accepted != 2 || out.Duplicates != 1 || out.Failed != 2 || out.Deliveries["accepted"] != 2 {
		t.Errorf("ended with %d: %s%s", ran.code, ran.out, ran.err)
	}
	if len(out.Errors) != 2 || out.Errors[0].Line != 2 || out.Errors[0].Error.Pointer == "" || out.Errors[1].Line != 3 {
		t.Errorf("bad lines are %+v", out.Errors)
	}
	if r.total() != 2 {
		t.Errorf("%d mails, want 2", r.total())
	}
	if text := s.mustRun("", "publish", "story", write(t, "one.json", "{\n  \"title\": \"file\"\n}\n"), "--wait"); !strings.Contains(text, "evt-") || !strings.Contains(text, "1 accepted") {
		t.Errorf("published: %s", text)
	}
	for _, args := range [][]string{
		{"status", "--json"}, {"trace", "three", "--json"}, {"trace", out.First, "--recipient", "a@example.org", "--json"}, {"trace", out.First, "--state", "accepted", "--json"},
		{"trace", "--subscriber", "a@example.org", "--json"}, {"parked", "list", "--json"}, {"version", "--json"},
	} {
		if text := s.mustRun("", args...); !json.Valid([]byte(text)) {
			t.Errorf("%v did not print JSON: %s", args, text)
		}
		if text := s.mustRun("", args[:len(args)-1]...); strings.TrimSpace(text) == "" {
			t.Errorf("%v printed nothing", args[:len(args)-1])
		}
	}
	b := into[fanfare.Broadcast](t, s.mustRun("", "trace", "three", "--json"))
	if b.State != "completed" || b.SourceID != "three" || b.Counts[fanfare.Accepted] != 1 || b.Stages.Completed.Before(b.Stages.Frozen) {
		t.Errorf("traced as %+v", b)
	}
	history := into[struct{ Deliveries []fanfare.Delivery }](t, s.mustRun("", "trace", "--subscriber", "a@example.org", "--json")).Deliveries
	if len(history) != 3 || history[0].Address != "a@example.org" || len(history[0].Attempts) != 1 {
		t.Errorf("the history is %+v", history)
	}
	for _, bad := range [][]string{{"publish", "storry", "-"}, {"trace"}, {"trace", "none"}, {"pause"}, {"publish", "story"}, {"frobnicate"}} {
		if ran := s.run(`{"title":"x"}`, bad...); ran.code != 1 && ran.code != 2 || ran.err == "" {
			t.Errorf("%v ended with %d: %s%s", bad, ran.code, ran.out, ran.err)
		}
	}
	if ran := run(t, []string{"FANFARE_SERVER=http://127.0.0.1:1", "FANFARE_KEY=x"}, "", "publish", "story", "-"); ran.code != 3 {
		t.Errorf("without a server it ended with %d: %s", ran.code, ran.err)
	}
}

// The sink of the command line counts what it took.
func TestSinkCommandCountsAndShows(t *testing.T) {
	t.Parallel()
	taking := exec.Command(binary, "sink", "--smtp", "127.0.0.1:0", "--show", "1", "--perm-fail", "0.5", "--record", filepath.Join(t.TempDir(), "record"))
	says, err := taking.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	taking.Stdout = &out
	if err := taking.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taking.Process.Kill() }) // it has ended where all went well
	line := make([]byte, 200)
	n, err := says.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(line[:n]))
	address := words[4] // sink takes mail at ADDRESS
	s := serve(t)
	s.http.must(200, "POST", "/v1/apply", yaml, news(address, ""))
	s.subscribe(crowd(60)...)
	b := s.http.completed(s.http.publish(`{"title":"counted"}`))
	// The sink prints messages while it runs.
	var shown strings.Builder
	for !strings.Contains(shown.String(), "Subject: counted") {
		n, err := says.Read(line)
		if err != nil {
			t.Fatalf("it did not show a mail: %v\n%s", err, shown.String())
		}
		shown.Write(line[:n])
	}
	if err := taking.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, says); err != nil {
		t.Fatal(err)
	}
	if err := taking.Wait(); err != nil {
		t.Fatal(err)
	}
	sum := into[sink.Summary](t, out.String())
	if sum.Unique != b.Counts[fanfare.Accepted] || sum.Rejected5xx != b.Counts[fanfare.Failed] || sum.Unique+sum.Rejected5xx != 60 || sum.Rejected5xx == 0 {
		t.Errorf("the sink counted %+v, the server %v", sum, b.Counts)
	}
	if second := run(t, nil, "", "sink", "--smtp", strings.TrimPrefix(s.http.url, "http://")); second.code != 1 || !strings.Contains(second.err, "choose other addresses") {
		t.Errorf("where another program listens it ended with %d: %s", second.code, second.err)
	}
}
