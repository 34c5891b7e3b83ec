package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// An export that is imported elsewhere gives the same subscriptions, in both formats.
func TestExportAndImportGiveTheSame(t *testing.T) {
	t.Parallel()
	from, _ := newsroom(t, sink.Config{}, "")
	rows := []string{
		`{"id":"a","topic":"story","channel":"email","to":"a@example.org","rule":"level","params":{"from":1.5},"data":{"n":"5","null":null,"list":["x",1]},"locale":"de-AT","time_zone":"Europe/Vienna","attributes":{"name":"Null, \"A\"\nB"}}`,
		`{"id":"b","topic":"story","channel":"email","to":"b@example.org","filter":"event.title == \"x, y\""}`,
		`{"topic":"story","channel":"email","to":"c@example.org"}`,
	}
	from.mustRun(strings.Join(rows, "\n"), "import", "subscriptions", "-")
	from.http.subscribe(`{"id":"ended","topic":"story","channel":"email","to":"d@example.org"}`)
	from.http.must(204, "DELETE", "/v1/subscriptions/ended", "", "")
	sorted := func(text string) []string {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		slices.Sort(lines)
		return lines
	}
	want := sorted(from.mustRun("", "export", "subscriptions"))
	if len(want) != 3 {
		t.Fatalf("exported %v", want)
	}
	for _, format := range []string{"ndjson", "csv"} {
		file := filepath.Join(t.TempDir(), "people."+format)
		if ran := from.run("", "export", "subscriptions", "--format", format, "--output", file); ran.code != 0 || !strings.Contains(ran.err, "3 subscriptions") {
			t.Fatalf("export ended with %d: %s", ran.code, ran.err)
		}
		to, _ := newsroom(t, sink.Config{}, "")
		to.mustRun("", "import", "subscriptions", file)
		if got := sorted(to.mustRun("", "export", "subscriptions")); !slices.Equal(got, want) {
			t.Errorf("by %s: %s\nwant %s", format, got, want)
		}
	}
	if out := from.mustRun("", "export", "subscriptions", "--subscriber", "b@example.org"); strings.Count(out, "\n") != 1 || !strings.Contains(out, "x, y") {
		t.Errorf("of one person: %s", out)
	}
	if ran := from.run("", "export", "subscriptions", "--format", "xml"); ran.code != 1 {
		t.Errorf("an unknown format ended with %d", ran.code)
	}
}

// Ctrl-C ends an import at a line that is known; the next run goes on there.
func TestAnImportThatWasStoppedGoesOn(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	const people = 200_000
	var b strings.Builder
	for i := range people {
		fmt.Fprintf(&b, `{"topic":"story","channel":"email","to":"p%d@example.org"}`+"\n", i)
	}
	file := write(t, "people.ndjson", b.String())
	cmd := exec.Command(binary, "import", "subscriptions", file)
	cmd.Env = append(os.Environ(), "FANFARE_SERVER="+s.url, "FANFARE_KEY="+s.key)
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended where all went well
	eventually(t, "something is noted", func() bool { _, err := os.Stat(file + ".progress"); return err == nil })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code tells
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), "stopped after line") {
		t.Fatalf("ended with %d: %s", cmd.ProcessState.ExitCode(), errs.String())
	}
	ran := s.run("", "import", "subscriptions", file, "--json")
	sum := into[summary](t, ran.out)
	if ran.code != 0 || sum.Created != people || sum.Updated != 0 || !strings.Contains(ran.err, "continuing after line") {
		t.Errorf("ended with %d: %s%s", ran.code, ran.out, ran.err)
	}
	if left, _ := filepath.Glob(file + ".*"); left != nil {
		t.Errorf("%v is left", left)
	}
}
