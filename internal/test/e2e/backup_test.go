package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// restored is what `fanfare restore --list --json` says.
type restored struct {
	Broadcasts int
	Deliveries int64
	Unmatched  int
	Uncertain  []struct {
		Event               string
		Unmatched           bool
		Messages, Unsettled int64
	}
}

// restoreElsewhere starts a server on a directory that is made of a backup, of
// files whatever the database was that the backup was taken of.
func restoreElsewhere(t *testing.T, file string) *server {
	t.Helper()
	s := &server{t: t, dir: filepath.Join(t.TempDir(), "restored")}
	if r := run(t, nil, "", "restore", file, "--data-dir", s.dir); r.code != 0 || !strings.Contains(r.out, "paused") {
		t.Fatalf("restore ended with %d: %s%s", r.code, r.out, r.err)
	}
	s.start()
	return s
}

// A backup is taken while a broadcast is under way at a relay that refuses some
// for now and some for good, and while people subscribe and events are
// published. The server is killed; the backup is restored elsewhere.
func TestBackupOfAWorkingServerLosesNothingThatWasAcknowledgedBefore(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{Inject: sink.Inject{Seed: 7, TempFail: 0.2, PermFail: 0.1}}, "rate: unlimited, connections: 4, retry: [2s, 2s]")
	people := crowd(300)
	s.subscribe(people...)
	over := s.http.publish(`{"title":"over"}`)
	s.http.completed(over)
	// These events must not be completed before the backup is taken.
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: 20/s, connections: 4, retry: [2s, 2s]"))
	before := map[string]string{over: "over"} // events by id, with their titles
	for i := range 3 {
		title := fmt.Sprintf("before-%d", i)
		before[s.http.publish(fmt.Sprintf(`{"title":%q}`, title))] = title
	}
	already := r.total()
	eventually(t, "some of the first has left", func() bool { return r.total() > already+30 })

	file := filepath.Join(t.TempDir(), "working.tar")
	meanwhile, stop := sync.WaitGroup{}, make(chan struct{})
	meanwhile.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			s.http.send("PUT", fmt.Sprintf("/v1/subscriptions/during-%d", i), plain, fmt.Sprintf(`{"topic":"story","channel":"email","to":"during%d@example.org"}`, i))
			s.http.send("POST", "/v1/topics/story/events", plain, fmt.Sprintf(`{"title":"during-%d"}`, i))
		}
	})
	s.mustRun("", "backup", "--rate", "1MB", file)
	close(stop)
	meanwhile.Wait()
	s.mustRun("", "backup", "verify", file)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.gone

	o := restoreElsewhere(t, file)
	list := into[restored](t, o.mustRun("", "restore", "--list", "--json"))
	uncertain := map[string]int64{}
	for _, u := range list.Uncertain {
		uncertain[u.Event] = u.Unsettled
		if u.Unmatched {
			uncertain[u.Event] = 1 << 30
		}
	}
	open := 0
	for id, title := range before {
		if uncertain[id] > 0 {
			open++
		}
		if title == "over" && uncertain[id] != 0 {
			t.Errorf("what was over is uncertain: %d", uncertain[id])
		}
	}
	if open == 0 {
		t.Fatalf("nothing was open at the backup: %+v", list)
	}
	if text := o.mustRun("", "status"); !strings.Contains(text, "RESTORED") || !strings.Contains(text, "may have been sent since") {
		t.Errorf("the status says nothing of it: %s", text)
	}
	left := r.total()
	o.standsStill(r, left)
	o.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: unlimited, retry: [1s, 1s]"))
	o.mustRun("", "resume", "--all")
	if status := into[fanfareStatus](t, o.mustRun("", "status", "--json")); len(status.Paused) != 0 {
		t.Errorf("still paused: %+v", status.Paused)
	}
	for id, title := range before {
		b := o.http.completed(id)
		if b.Messages < int64(len(people)) {
			t.Errorf("%s is for %d people, want at least %d", title, b.Messages, len(people))
		}
		r.judge(title, o.http.deliveries(id, ""), uncertain[id])
	}

	// The next event has a new number, new recipients and new unsubscribe links.
	o.http.subscribe(`{"topic":"story","channel":"email","to":"later@example.org"}`)
	later := o.http.publish(`{"title":"later"}`)
	for id := range before {
		if a, _ := fanfare.ParseEventRef(id); a.Seq > mustRef(t, later).Seq {
			t.Errorf("%s is before %s, which was restored", later, id)
		}
	}
	o.http.completed(later)
	r.oneOf("later", "later@example.org")
}

func mustRef(t *testing.T, id string) fanfare.EventRef {
	t.Helper()
	ref, ok := fanfare.ParseEventRef(id)
	if !ok {
		t.Fatalf("%q is no event", id)
	}
	return ref
}

// standsStill checks that a server whose everything is paused hands out work
// and sends none of it: an event that comes now is matched, and held.
func (s *server) standsStill(r *relay, left int) {
	s.t.Helper()
	s.frozen(s.http.publish(`{"title":"while paused"}`))
	s.mustStop()
	s.start() // the pause is kept
	if got := r.total(); got != left {
		s.t.Errorf("%d mails left while everything was paused", got-left)
	}
}

// judge compares what came of an event with what arrived: nobody who was
// accepted is without a mail, and no more got it twice than were uncertain.
func (r *relay) judge(title string, deliveries []fanfare.Delivery, uncertain int64) {
	r.t.Helper()
	got := map[string]int{}
	r.mu.Lock()
	for to, mails := range r.mails {
		for _, mail := range mails {
			if field(mail, "Subject") == title {
				got[to]++
			}
		}
	}
	r.mu.Unlock()
	twice := int64(0)
	for _, d := range deliveries {
		n := got[d.Address]
		switch {
		case d.State == fanfare.Accepted.String() && n == 0:
			r.t.Errorf("%s: %s was accepted, and there is no mail", title, d.Address)
		case d.State == fanfare.Failed.String() && n == 0:
		case d.State != fanfare.Accepted.String():
			r.t.Errorf("%s: %s is %s and got %d mails", title, d.Address, d.State, n)
		}
		twice += int64(max(n-1, 0))
	}
	if twice > uncertain {
		r.t.Errorf("%s: %d mails are repeated, and %d deliveries were uncertain", title, twice, uncertain)
	}
}

// oneOf checks that a recipient has exactly one mail of a title.
func (r *relay) oneOf(title, to string) {
	r.t.Helper()
	n := 0
	for _, mail := range r.of(to) {
		if field(mail, "Subject") == title {
			n++
		}
	}
	if n != 1 {
		r.t.Errorf("%s got %q %d times", to, title, n)
	}
}

func TestCancelledMessagesOfUnknownOutcomeAreNotSent(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, single)
	people := crowd(300)
	event, letGo := halfway(s, r, people)
	s.mustRun("", "pause", "--all")
	letGo()
	left := s.awaitIdle(r, event)
	file := filepath.Join(t.TempDir(), "halfway.tar")
	s.mustRun("", "backup", file)
	s.mustRun("", "resume", "--all")
	s.http.completed(event)
	s.mustStop()

	o := restoreElsewhere(t, file)
	list := into[restored](t, o.mustRun("", "restore", "--list", "--json"))
	if list.Broadcasts != 1 || list.Deliveries != int64(len(people)-left) || list.Unmatched != 0 || len(list.Uncertain) != 1 || list.Uncertain[0].Event != event {
		t.Errorf("uncertain are %+v, want %d of %s", list, len(people)-left, event)
	}
	if text := o.mustRun("", "restore", "--list"); !strings.Contains(text, event) {
		t.Errorf("the list is %s", text)
	}
	o.mustRun("", "cancel", "--broadcast", event, "--reason", "they have it")
	b := o.http.completed(event)
	o.mustRun("", "resume", "--all")
	if b.Counts[fanfare.Accepted] != int64(left) || b.Counts[fanfare.Cancelled] != int64(len(people)-left) {
		t.Errorf("got %v, want %d accepted", b.Counts, left)
	}
	r.only(people...)
}

func TestBackupAndRestoreRefuseWhatCannotBeRight(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.subscribe(crowd(10)...)
	dir := t.TempDir()
	file := filepath.Join(dir, "good.tar")
	s.mustRun("", "backup", file)
	expectRefusal := func(r ran, want string) {
		t.Helper()
		if r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("ended with %d, want %q: %s%s", r.code, want, r.out, r.err)
		}
	}
	expectRefusal(s.run("", "backup", file), "exists")
	expectRefusal(s.run("", "backup", "--rate", "fast", filepath.Join(dir, "x")), "--rate")
	expectRefusal(s.run("", "restore", "--list"), "not restored")
	expectRefusal(run(t, nil, "", "restore", file, "--data-dir", s.dir), "not empty")
	expectRefusal(run(t, s.where(), "", "backup", "--stopped", "--data-dir", s.dir, filepath.Join(dir, "y")), "omit --stopped")
	expectRefusal(run(t, nil, "", "backup", "--stopped", "--data-dir", dir, filepath.Join(dir, "y")), "is not a data directory")
	key := strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news"))
	for _, path := range []string{"/v1/backup", "/v1/restored"} {
		s.http.with(key).must(403, "GET", path, "", "")
	}

	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.tar")
	for what, content := range map[string][]byte{"cut": text[:len(text)/2], "damaged": slices.Concat(text[:len(text)/2], []byte("x"), text[len(text)/2+1:])} {
		if err := os.WriteFile(bad, content, 0o600); err != nil {
			t.Fatal(err)
		}
		expectRefusal(run(t, nil, "", "backup", "verify", bad), "truncated or damaged")
		into := filepath.Join(t.TempDir(), "empty")
		expectRefusal(run(t, nil, "", "restore", bad, "--data-dir", into), "truncated or damaged")
		if left, err := os.ReadDir(into); err != nil || len(left) != 0 {
			t.Errorf("%s: it leaves %v, %v", what, left, err)
		}
	}
	if r := run(t, nil, string(text), "backup", "verify", "-"); r.code != 0 {
		t.Errorf("from standard input: %s", r.err)
	}
	if r := s.run("", "backup", "-"); r.code != 0 || run(t, nil, r.out, "backup", "verify", "-").code != 0 {
		t.Errorf("to standard output: %d, %s", r.code, r.err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.partial")); err != nil || len(left) != 0 {
		t.Errorf("half files are left: %v, %v", left, err)
	}
}

// Every file of a server is in the backup, or on this list with the reason why not.
func TestEveryFileOfADataDirectoryIsInTheBackupOrKnownNotToBe(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.subscribe(crowd(10)...)
	s.http.completed(s.http.publish(`{"title":"x"}`))
	out := map[string]string{
		"admin.key":     "made anew by the first start of the restored server",
		"lock":          "empty",
		"database.json": "a backup is restored into files, which belong to no database",
		"bus":           "its unmatched events are in the backup, and its batches are hints that are cut again",
	}
	var m struct{ Parts []struct{ Name string } }
	file := filepath.Join(t.TempDir(), "all.tar")
	if err := json.Unmarshal([]byte(s.mustRun("", "backup", "--json", file)), &m); err != nil {
		t.Fatal(err)
	}
	in := map[string]bool{}
	for _, p := range m.Parts {
		top, _, _ := strings.Cut(p.Name, "/")
		in[top] = true
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), "-wal"), "-shm")
		if !in[name] && out[name] == "" {
			t.Errorf("%s is not in the backup: a restored server would lack it", name)
		}
	}
}

// Stopping a server does not wait for a backup, and the backup leaves no file.
func TestABackupThatTheServerEndsLeavesNoFile(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.subscribe(crowd(100)...)
	dir := t.TempDir()
	file := filepath.Join(dir, "slow.tar")
	ended := make(chan ran)
	go func() { ended <- s.run("", "backup", "--rate", "1KB", file) }()
	eventually(t, "the backup has begun", func() bool {
		_, err := os.Stat(file + ".partial")
		return err == nil
	})
	second := s.http.refused(409, "GET", "/v1/backup", "", "")
	if !strings.Contains(second.Detail, "another backup") {
		t.Errorf("a second one: %+v", second)
	}
	s.mustStop()
	if r := <-ended; r.code != 1 || !strings.Contains(r.err, "truncated") {
		t.Errorf("it ended with %d: %s", r.code, r.err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
