//go:build crashsteps

package crash

import (
	"context"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// releaseSteps are passed when what was held goes back to work.
var releaseSteps = []string{"before-release", "after-release"}

// TestApprovedBroadcastIsSentOnceAfterAKillBeforeItsRelease has nobody do
// anything after the death: the next start alone has to find what may leave.
func TestApprovedBroadcastIsSentOnceAfterAKillBeforeItsRelease(t *testing.T) {
	t.Parallel()
	w := configured(tell(t), "fsync", pgtest.Chosen(t), operated, sink.Inject{TempFail: 0.02, PermFail: 0.01, DropBeforeData: 0.001, DropInData: 0.001, DropBeforeReply: 0.001})
	w.subscribe(2500, 1)
	kills := 0
	for _, step := range releaseSteps {
		for _, by := range []string{"approve", "resume"} {
			id, err := w.publish(story, step+"-"+by)
			if err != nil {
				w.t.Fatal(err)
			}
			l := w.server.current()
			scope := fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: id}
			w.until(id+" is held, in the store", func() bool {
				b, err := l.client.Event(t.Context(), id)
				if err != nil || b.State != fanfare.BroadcastHeld {
					return false
				}
				status, err := l.client.Status(t.Context())
				return err == nil && status.Bus.EventsPending == 0 && status.Bus.BatchesPending == 0 // else they come again by themselves
			})
			if by == "resume" { // it is approved while it is paused
				w.must(func(ctx context.Context, api *client.Client) error { return api.Pause(ctx, scope, "the test") })
				w.must(func(ctx context.Context, api *client.Client) error { return api.Approve(ctx, id) })
			}
			w.server.stop(l) // after a kill the bus might hand on again what it had given off
			l = w.server.start("FANFARE_CRASH_AT=" + step + ":1")
			w.server.awaitReady(l)
			told := l.client.Approve
			if by == "resume" {
				told = func(ctx context.Context, _ string) error { return l.client.Resume(ctx, scope, "") }
			}
			if err := told(t.Context(), id); err == nil {
				w.t.Fatalf("%s was answered at %s", by, step)
			}
			w.server.awaitDeath(w.given, l, "died at "+step+" of "+by)
			kills++
			w.server.awaitReady(w.server.start())
			if _, err := w.completed(id); err != nil {
				w.t.Fatalf("%s, %s: %v", step, by, err)
			}
		}
	}
	w.check(kills)
}

// must does something that has to be answered.
func (w *world) must(call func(context.Context, *client.Client) error) {
	w.t.Helper()
	if err := w.server.do(w.given, call); err != nil {
		w.t.Fatal(err)
	}
}
