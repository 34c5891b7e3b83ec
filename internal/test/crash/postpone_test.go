//go:build crashsteps

package crash

import (
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// postponeSteps are passed when work goes back to the due table without an attempt.
var postponeSteps = []string{"before-postpone", "after-postpone"}

// postponing is a channel whose one destination takes so little that most of a
// broadcast is put off.
const postponing = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, destinations: {rate: 100/s}, retry: [1s, 1s, 1s, 1s, 1s]}
topics:
  story:
    template: message
    lane: bulk
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
  note: {template: message, lane: urgent}
templates:
  message:
    subject: "{{ event.title }}"
    text: "Hello {{ subscriber.address }}: {{ event.title }}\n"
`

// TestPostponedMessagesAreSentOnceAfterAKill has work put off by the
// sender, for a destination, and by the loader, for a time; the server dies before
// that is kept, and after.
func TestPostponedMessagesAreSentOnceAfterAKill(t *testing.T) {
	t.Parallel()
	w := configured(tell(t), "fsync", pgtest.Chosen(t), postponing, sink.Inject{TempFail: 0.02, PermFail: 0.01,
		DropBeforeData: 0.002, DropInData: 0.002, DropBeforeReply: 0.002})
	w.subscribe(800, 1)
	kills := 1
	w.server.kill(w.server.current())
	for _, step := range postponeSteps {
		for name, before := range map[string]time.Duration{"destination": 0, "not_before": 3 * time.Second} {
			o := client.PublishOptions{ID: step + "-" + name}
			if before > 0 {
				o.NotBefore = time.Now().Add(before)
			}
			l := w.server.start("FANFARE_CRASH_AT=" + step + ":1")
			var id string
			var err error
			var publishing sync.WaitGroup
			publishing.Go(func() { id, err = w.publishWith(story, o) }) // its answer may be cut off
			w.server.awaitDeath(w.given, l, "died at "+step+" for "+name)
			kills++
			w.server.awaitReady(w.server.start())
			if publishing.Wait(); err == nil {
				_, err = w.completed(id)
			}
			if err != nil {
				w.t.Fatalf("%s, %s: %v", step, name, err)
			}
			w.server.kill(w.server.current())
			kills++
		}
	}
	w.server.awaitReady(w.server.start())
	w.check(kills)
}
