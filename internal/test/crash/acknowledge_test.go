//go:build crashsteps

package crash

import (
	"context"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
)

// The server has a fault for tests: it takes a batch off the bus when it has
// given it to the connections, and not when the outcomes are kept. The same
// kill that harms nobody must lose messages then, or the judge is blind.
func TestAcknowledgingBeforeRecordingLosesMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		env   []string
		loses bool
	}{
		{"recorded first", nil, false},
		{"acknowledged first", []string{"FANFARE_FAULT=acknowledge-before-record"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			// All batches are in the sender at once, and the relay is slow: the
			// bus has written down what was acknowledged before the server dies
			// in the middle of the story.
			w := newWorld(t, "relaxed", 1500, 50*time.Millisecond)
			w.server.kill(w.server.current())
			l := w.server.start(append(c.env, "FANFARE_CRASH_AT=after-reply:750")...)
			if _, err := w.publish(story, "story"); err != nil {
				w.t.Fatal(err)
			}
			w.server.awaitDeath(w.given, l, "came to the middle of the story")
			w.server.awaitReady(w.server.start())
			w.quiet(c.loses)
			v := w.judge()
			if loses := len(v.Lost) > 0; loses != c.loses {
				w.t.Errorf("lost %d messages, want some: %t; %v", len(v.Lost), c.loses, v)
			}
		})
	}
}

// quiet waits until nothing is under way, whether or not all is settled. If batches were lost, their deferred deliveries stay
// deferred, and their other deliveries stay pending although the bus is empty.
func (w *world) quiet(loses bool) {
	w.t.Helper()
	w.until("nothing is under way", func() bool {
		var status client.Status
		if err := w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) {
			status, err = api.Status(ctx)
			return err
		}); err != nil {
			w.t.Fatal(err)
		}
		return status.Bus.EventsPending == 0 && status.Bus.BatchesPending == 0 && (status.Deliveries.Deferred == 0 || loses && status.Deliveries.Pending > 0)
	})
}
