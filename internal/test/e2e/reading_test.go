package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// A recipient who waits for a digest has no delivery yet: the trace of the event names the
// digest and its time.
func TestTheTraceOfARecipientSaysForWhichDigestItWaits(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, digests)
	far := faraway() + " in Europe/London"
	s.http.subscribe(`{"id":"late","topic":"story","channel":"email","to":"late@example.org","cadence":"` + far + `"}`)
	s.http.subscribe(`{"id":"now","topic":"story","channel":"email","to":"now@example.org"}`)
	event := s.http.publish(`{"title":"first","place":"Graz"}`)
	s.http.completed(event)
	if said := s.mustRun("", "trace", event, "--recipient", "late@example.org"); !strings.Contains(said, "waits for a digest: "+far+", due ") || strings.Contains(said, "no deliveries") {
		t.Errorf("of who waits: %s", said)
	}
	if said := s.mustRun("", "trace", event, "--recipient", "now@example.org"); strings.Contains(said, "waits for a digest") || !strings.Contains(said, "accepted") {
		t.Errorf("of who was told at once: %s", said)
	}
	s.http.subscribe(`{"id":"other","topic":"story","channel":"email","to":"other@example.org","filter":"event.place == 'Wien'"}`)
	if said := s.mustRun("", "trace", event, "--recipient", "other@example.org"); said != "no deliveries\n" {
		t.Errorf("of whom it was not for: %s", said)
	}
}

// apply prints the findings of lint, too.
func TestApplyNotesWhatLintFinds(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	file := filepath.Join(t.TempDir(), "fanfare.yaml")
	const document = "service: news\ntemplates:\n  page: {subject: A page, html: \"<html><body><p>Words that are to be read by people.</p></body></html>\"}\n"
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := s.mustRun("", "apply", "-f", file, "--dry-run")
	applied := s.mustRun("", "apply", "-f", file)
	for how, said := range map[string]string{"asked": asked, "applied": applied} {
		if !strings.Contains(said, "lang-missing") {
			t.Errorf("%s: %s", how, said)
		}
	}
}

// One command makes the keys of a channel and prints one list for it.
func TestNewKeysArePrintedAsOneListForTheChannel(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	made := run(t, nil, "", "dkim", "new", "example.org", "--type", "rsa,ed25519", "--out", folder)
	if made.code != 0 || strings.Count(made.out, "dkim:\n") != 1 || strings.Count(made.out, "  - {domain: example.org, selector: ") != 2 || strings.Count(made.out, "IN TXT") != 2 {
		t.Errorf("%d: %s%s", made.code, made.out, made.err)
	}
	again := run(t, nil, "", "dkim", "new", "example.org", "--type", "ed25519,rsa", "--selector", "one", "--out", folder)
	if again.code != 1 || !strings.Contains(again.err, "--selector names one key") {
		t.Errorf("two keys of one name: %d %s", again.code, again.err)
	}
	// Where the second cannot be made, the first is not left behind.
	other := t.TempDir()
	files, err := filepath.Glob(filepath.Join(folder, "*rsa*.pem"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(filepath.Join(other, filepath.Base(files[0])), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ran := run(t, nil, "", "dkim", "new", "example.org", "--type", "ed25519,rsa", "--out", other); ran.code != 1 {
		t.Errorf("over a key that is there: %d %s", ran.code, ran.out)
	}
	if left, err := os.ReadDir(other); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A key of a digest is not one of its topic, and a cadence of state says which it needs.
func TestACadenceOfStateSaysWhoseKeyItNeeds(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, digests)
	refused := s.http.must(422, "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","to":"a@example.org","cadence":"daily 08:00 of state"}`)
	for _, want := range []string{"key only in its digest", "set the key of the topic itself to place"} {
		if !strings.Contains(refused, want) {
			t.Errorf("%q is not in %s", want, refused)
		}
	}
}
