//go:build crashsteps

package crash

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An erasure that was begun is finished by the next start, at whichever of its
// steps the server died.
func TestAnErasureIsFinishedAfterADeathAtEachOfItsSteps(t *testing.T) {
	w := newWorld(t, "fsync", 200, 0)
	id, err := w.publish(story, "before")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.completed(id); err != nil {
		t.Fatal(err)
	}
	w.server.kill(w.server.current())
	who := 1
	for _, step := range erasureSteps {
		for range 3 {
			address, _ := reader(who)
			who++
			l := w.server.start("FANFARE_CRASH_AT=" + step + ":1")
			w.server.awaitReady(l)
			if !w.kept(address) {
				t.Fatalf("%s is nowhere before it is erased", address)
			}
			for who, err := range l.client.Subscribers(t.Context(), address) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := l.client.EraseSubscriber(t.Context(), who.ID, false); err == nil {
					t.Fatalf("at %s the erasure of %s was answered", step, address)
				}
			}
			<-l.alive.Done()
			w.server.wasKilled(l)

			again := w.server.start()
			w.server.awaitReady(again)
			w.until(address+" is in no file after a death at "+step, func() bool { return !w.kept(address) })
			w.server.kill(again)
		}
	}
}

// kept reports whether any file of the data directory has a text.
func (w *world) kept(text string) (found bool) {
	w.t.Helper()
	local, _, _ := strings.Cut(text, "@")
	err := filepath.WalkDir(w.server.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || found {
			return nil //nolint:nilerr // a file may go while it is looked at
		}
		data, err := os.ReadFile(path)
		found = found || err == nil && bytes.Contains(data, []byte(local+"@"))
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}
