//go:build crashsteps

package crash

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// steps are the durable steps, with the passings at which the server dies.
var steps = []struct {
	name     string
	passings []int
}{
	{"before-append", []int{1, 5, 30}}, {"after-append", []int{1, 5, 30}},
	{"before-manifest", []int{1, 5, 30}}, {"after-manifest", []int{1, 5, 30}},
	{"before-publish", []int{1, 5, 30}}, {"after-publish", []int{1, 5, 30}},
	{"after-event-ack", []int{1, 5, 30}},
	{"before-body", []int{1, 100, 1500}}, {"after-reply", []int{1, 100, 1500}},
	{"before-outcome", []int{1, 20, 100}}, {"after-outcome", []int{1, 20, 100}},
	{"before-batch-ack", []int{1, 3, 9}}, {"after-batch-ack", []int{1, 3, 9}},
	{"before-due-publish", []int{1, 2, 3}}, {"after-due-publish", []int{1, 2, 3}},
}

// erasureSteps have a test of their own.
var erasureSteps = []string{"before-erase", "before-scrub", "before-erase-people"}

func TestNothingIsLostWhenTheServerDiesAtADurableStep(t *testing.T) {
	t.Parallel()
	for _, durability := range []string{"relaxed", "fsync"} {
		t.Run(durability, func(t *testing.T) {
			w := newWorld(t, durability, 3000, 0)
			kills := 1
			w.during(func() {
				w.server.kill(w.server.current())
				for _, step := range steps {
					for _, passing := range step.passings {
						w.dieAt(step.name, passing)
						kills++
					}
				}
				w.server.awaitReady(w.server.start())
			})
			w.check(kills)
		})
	}
}

func TestEveryDurableStepIsInTheTable(t *testing.T) {
	known := map[string]bool{}
	for _, step := range steps {
		known[step.name] = true
	}
	for _, name := range slices.Concat(erasureSteps, moveSteps, releaseSteps, templateSteps, gatherSteps, postponeSteps, returnSteps, noticeSteps, filterSteps, sendSteps, notifybcSteps, mailboxSteps()) {
		known[name] = true
	}
	call := regexp.MustCompile(`failpoint\.Hit\("([a-z-]+)"\)`)
	found := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range call.FindAllSubmatch(source, -1) {
			found[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(known, found) {
		t.Errorf("the table has %v, the sources have %v", slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(found)))
	}
}

// dieAt runs the server until it ends itself at a step.
func (w *world) dieAt(step string, passing int) {
	w.t.Helper()
	at := fmt.Sprintf("%s:%d", step, passing)
	w.server.awaitDeath(w.given, w.server.start("FANFARE_CRASH_AT="+at), "came to "+at)
}
