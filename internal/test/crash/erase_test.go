//go:build crashsteps

package crash

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/store/storetest"
)

// An erasure that was begun is finished by the next start, at whichever of its
// steps the server died.
func TestAnErasureIsFinishedAfterADeathAtEachOfItsSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "fsync", 200, 0)
	id, err := w.publish(story, "before")
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.completed(id); err != nil {
		w.t.Fatal(err)
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
				w.t.Fatalf("%s is nowhere before it is erased", address)
			}
			var told error
			for who, err := range l.client.Subscribers(t.Context(), address) {
				if err != nil {
					w.t.Fatal(err)
				}
				if _, told = l.client.EraseSubscriber(t.Context(), who.ID, false); told == nil {
					w.t.Fatalf("at %s the erasure of %s was answered", step, address)
				}
			}
			w.server.awaitDeath(w.given, l, fmt.Sprintf("died at %s of an erasure, which says: %v", step, told))

			again := w.server.start()
			w.server.awaitReady(again)
			w.until(address+" is in no file after a death at "+step, func() bool { return !w.kept(address) })
			w.server.kill(again)
		}
	}
}

// kept reports whether any file of the data directory, or any table of the
// database, has a person's address.
func (w *world) kept(address string) bool {
	w.t.Helper()
	local, _, _ := strings.Cut(address, "@")
	return len(storetest.Find(w.t, w.server.dir, local+"@")) > 0 ||
		w.server.database != "" && len(storetest.Find(w.t, w.server.database, local+"@")) > 0
}
