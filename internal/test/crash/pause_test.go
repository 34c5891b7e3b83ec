//go:build crashsteps

package crash

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// pauseLength is longer than a queue waits for heartbeats of the bus.
const pauseLength = 2500 * time.Millisecond

// TestAPauseDelaysNoEventByALease stops the process again and again, as a virtual machine that is suspended does. Leases last longer than the test
// waits: a message that is lost between the bus and a stage shows as an event that is not completed.
func TestAPauseDelaysNoEventByALease(t *testing.T) {
	t.Parallel()
	w := configured(tell(t), "relaxed", pgtest.Chosen(t), document, sink.Inject{TempFail: 0.02, PermFail: 0.2, DropBeforeData: 0.01}, "FANFARE_LEASE=1h") // some of 60 people are refused
	w.subscribe(60, 1)
	stop := make(chan struct{})
	var publishing sync.WaitGroup
	publishing.Go(func() {
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-pace.C:
			}
			if _, err := w.publish(story, fmt.Sprint("story-", n)); err != nil {
				w.fail(err)
				return
			}
		}
	})
	random := w.random(1)
	process := w.server.current().cmd.Process
	for range setting(t, "CRASH_PAUSES", 8) {
		wait(random, 300*time.Millisecond)
		if err := process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		<-time.After(pauseLength)
		if err := process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	publishing.Wait()
	w.check(0) // waits for the events
}
