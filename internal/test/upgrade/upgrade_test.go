package upgrade

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// TestTheDataDirectoryOfEachReleaseOpensAndGoesOn starts the present program on
// what each release left when it was killed. With -make it makes such a
// directory first, and judges it like the others.
func TestTheDataDirectoryOfEachReleaseOpensAndGoesOn(t *testing.T) {
	if *makeVersion != "" {
		if !strings.HasPrefix(*makeVersion, "v") {
			t.Fatalf("%q is no version: write it as v1.2.3", *makeVersion)
		}
		makeFixture(t, *makeProgram, *makeVersion)
	}
	releases, err := os.ReadDir(fixtures)
	if err != nil || len(releases) == 0 {
		t.Fatalf("no release has a fixture: %v", err)
	}
	for _, release := range releases {
		t.Run(release.Name(), func(t *testing.T) {
			t.Parallel()
			opensAndGoesOn(t, release.Name(), unpacked(t, release.Name()), false)
		})
		t.Run(release.Name()+" restored from its backup", func(t *testing.T) {
			t.Parallel()
			dir := restored(t, unpacked(t, release.Name()))
			startedTwice(t, dir)
			opensAndGoesOn(t, release.Name(), dir, true)
		})
	}
}

// unpacked is a copy of what a release left.
func unpacked(t *testing.T, version string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unpack(dataOf(version), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// restored makes a directory of a backup of another one, on which no server of
// the present program has run.
func restored(t *testing.T, of string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "restored")
	file := filepath.Join(t.TempDir(), "backup.tar")
	for _, args := range [][]string{{"backup", "--stopped", "--data-dir", of, file}, {"backup", "verify", file}, {"restore", file, "--data-dir", dir}} {
		if out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput(); err != nil {
			t.Fatalf("fanfare %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	return dir
}

// startedTwice lets a restored directory be taken up, and makes it as it was if
// the server had been killed right before it noted that it had.
func startedTwice(t *testing.T, dir string) {
	t.Helper()
	again := t.TempDir()
	for _, name := range []string{"restored.json", "events"} {
		if out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(dir, name), again).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	serve(t, binary, dir).kill()
	for _, name := range []string{"restored.json", "events"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(again, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func opensAndGoesOn(t *testing.T, version, dir string, restored bool) {
	var fixture expect
	if err := fixture.read(version); err != nil {
		t.Fatal(err)
	}
	s := serve(t, binary, dir)
	s.keptItsPast(&fixture, restored)

	r := newRelay(t, sink.Inject{})
	s.apply(document(func(string) string { return r.addr }, "unlimited"))
	for _, p := range s.parked() {
		s.must("POST", "/v1/parked/"+p.ID+"/retry", "", "", nil)
	}
	s.control("resume", fanfare.ScopeChannel, "news/"+waiting)
	if restored {
		for _, e := range fixture.Events {
			if got := r.got(e.Title); len(got) > 0 {
				t.Errorf("%s: %d left before everything was resumed", e.Title, len(got))
			}
		}
		s.control("resume", fanfare.ScopeAll, "")
	}
	for _, e := range fixture.Events {
		s.settled(e.ID, len(e.People))
	}
	s.subscribe(mail, "new@example.org")
	s.settled(s.publish(mail, "fresh"), len(fixture.People)+1)
	s.stop()

	s = serve(t, binary, dir)
	for _, e := range fixture.Events {
		s.settled(e.ID, len(e.People))
	}
	if list := s.parked(); len(list) != 0 {
		t.Errorf("still parked: %+v", list)
	}
	for _, e := range fixture.Events {
		if want, got := e.missing(), r.got(e.Title); !slices.Equal(got, want) {
			t.Errorf("%s: %d got it under the present program, want the %d who had not: %v", e.Title, len(got), len(want), got)
		}
	}
	if want := slices.Sorted(slices.Values(append(slices.Clone(fixture.People), "new@example.org"))); !slices.Equal(r.got("fresh"), want) {
		t.Errorf("the first event of the present program reached %v", r.got("fresh"))
	}
}

type pausedScope struct{ Scope fanfare.Scope }

// keptItsPast checks what the old program had finished, paused and parked,
// before anything leaves.
func (s *server) keptItsPast(fixture *expect, restored bool) {
	s.t.Helper()
	var status struct {
		Parked int
		Paused []pausedScope
	}
	s.must("GET", "/v1/status", "", "", &status)
	all := slices.ContainsFunc(status.Paused, func(p pausedScope) bool { return p.Scope.Kind == fanfare.ScopeAll })
	channel := slices.ContainsFunc(status.Paused, func(p pausedScope) bool { return p.Scope.Name == "news/"+waiting })
	if all != restored || !channel || status.Parked != 1 {
		s.t.Errorf("the status shows %+v", status)
	}
	for _, e := range fixture.Events {
		want := map[string]fanfare.State{finished: fanfare.Accepted, refused: fanfare.Failed, deferred: fanfare.Deferred, halfway: fanfare.Accepted}
		n := map[string]int{finished: len(e.People), refused: len(e.People), deferred: len(e.People), halfway: len(e.Got)}
		if b := s.broadcast(e.ID); b.Counts[want[e.State]] != int64(n[e.State]) && n[e.State] > 0 {
			s.t.Errorf("%s: %v, want %d %s", e.Title, b.Counts, n[e.State], want[e.State])
		}
	}
	var page struct{ Deliveries []fanfare.Delivery }
	s.must("GET", "/v1/subscribers/"+fixture.People[0]+"/deliveries?limit=100", "", "", &page)
	for _, e := range fixture.Events {
		known := slices.ContainsFunc(page.Deliveries, func(d fanfare.Delivery) bool { return d.Event == e.ID })
		if !known && e.State != unmatched {
			s.t.Errorf("%s is not in the history of %s", e.Title, fixture.People[0])
		}
	}
	if status, text := s.send("GET", "/v1/subscriptions/"+mail+"-"+fixture.People[0], "", ""); status != 200 || !strings.Contains(text, fixture.People[0]) {
		s.t.Errorf("a subscription answers %d: %s", status, text)
	}
}

// missing lists who has not got an event before, sorted; of one that was
// refused for good nobody is to get it any more.
func (e *event) missing() []string {
	var missing []string
	for _, p := range e.People {
		if e.State != refused && !slices.Contains(e.Got, p) {
			missing = append(missing, p)
		}
	}
	slices.Sort(missing)
	return missing
}

// A newer release leaves a directory that this program does not know.
func TestADataDirectoryOfANewerReleaseIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"control.db", "deliveries/deliveries-*.db"} {
		dir := unpacked(t, "v0.1.0")
		paths, err := filepath.Glob(filepath.Join(dir, file))
		if err != nil || len(paths) != 1 {
			t.Fatalf("%s: %v, %v", file, paths, err)
		}
		execute(t, paths[0], "PRAGMA user_version = 999", nil)
		s, _ := launch(t, binary, dir, nil)
		<-s.gone
		if log := s.logged(); s.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(log, "newer version of Fanfare: "+filepath.Base(paths[0])+" has schema version 999") || !strings.Contains(log, "restore a backup") {
			t.Errorf("%s: it ended with %d: %s", file, s.cmd.ProcessState.ExitCode(), log)
		}
	}
}
