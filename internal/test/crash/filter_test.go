//go:build crashsteps

package crash

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"sync"
	"testing"

	"fanfare.dev/fanfare/client/worker"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// filterSteps are passed when the answers of a filter are stored.
var filterSteps = []string{"before-filter-answers", "after-filter-answers"}

// choosing is a document whose stories go through a filter.
const choosing = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, retry: [1s, 1s, 1s, 1s, 1s]}
workers:
  chooser: {message_limit: 256KB}
topics:
  story:
    template: message
    lane: bulk
    filter: chooser
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
  note: {template: message, lane: urgent}
templates:
  message:
    subject: "{{ event.title }}"
    text: "Hello {{ subscriber.address }}: {{ event.title }}\n"
`

// keepAll connects an instance of the filter to a life until it dies. The instance keeps everybody. The returned function waits for the
// end, and returns how often each delivery was asked about.
func (w *world) keepAll(l *life) func() map[string]int {
	asked := map[string]int{}
	var mu sync.Mutex
	var running sync.WaitGroup
	running.Go(func() {
		err := worker.Run(l.alive, worker.Options{URL: l.url, Key: l.key, Service: "news", Worker: "chooser", Instance: "one", Logger: slog.New(slog.DiscardHandler)},
			func(_ context.Context, task *worker.Task) ([]byte, error) {
				var in struct{ Messages []struct{ ID string } }
				if err := json.Unmarshal(task.Body, &in); err != nil {
					return nil, err
				}
				var messages []map[string]any
				mu.Lock()
				defer mu.Unlock()
				for _, m := range in.Messages {
					asked[m.ID]++
					messages = append(messages, map[string]any{"id": m.ID, "keep": true})
				}
				return json.Marshal(map[string]any{"messages": messages})
			})
		if err != nil {
			w.t.Errorf("the filter ended: %v", err)
		}
	})
	return func() map[string]int {
		running.Wait()
		return asked
	}
}

// TestAFilterIsNotAskedAgainWhenItsAnswersAreStored has the server die immediately before and after answers are stored. After the second, the
// next life does not ask about the same deliveries.
func TestAFilterIsNotAskedAgainWhenItsAnswersAreStored(t *testing.T) {
	t.Parallel()
	w := configured(tell(t), "fsync", pgtest.Chosen(t), choosing, sink.Inject{TempFail: 0.02, PermFail: 0.01,
		DropBeforeData: 0.002, DropInData: 0.002, DropBeforeReply: 0.002})
	w.subscribe(1500, 1)
	kills := 1
	w.server.kill(w.server.current())
	for _, step := range filterSteps {
		l := w.server.start("FANFARE_CRASH_AT=" + step + ":2")
		w.server.awaitReady(l)
		first := w.keepAll(l)
		var id string
		var err error
		var publishing sync.WaitGroup
		publishing.Go(func() { id, err = w.publish(story, "of-"+step) }) // its answer may be cut off
		w.server.awaitDeath(w.given, l, "died at "+step)
		kills++
		before := first()
		l = w.server.start()
		w.server.awaitReady(l)
		second := w.keepAll(l)
		if publishing.Wait(); err == nil {
			_, err = w.completed(id)
		}
		if err != nil {
			w.t.Fatalf("%s: %v", step, err)
		}
		w.server.kill(l)
		kills++
		after := second()
		again := 0
		for id, times := range after {
			if times > 1 {
				w.t.Errorf("%s: asked %d times about %s in one life", step, times, id)
			}
			if before[id] > 0 {
				again++
			}
		}
		all := maps.Clone(before)
		maps.Copy(all, after)
		w.t.Logf("%s: asked about %d deliveries before the kill and %d after it, %d of them again", step, len(before), len(after), again)
		if step == "after-filter-answers" && again > 0 || step == "before-filter-answers" && again == 0 || len(all) != 1500 {
			w.t.Errorf("%s: asked about %d of 1500 deliveries, %d again", step, len(all), again)
		}
	}
	w.server.awaitReady(w.server.start())
	w.check(kills)
}
