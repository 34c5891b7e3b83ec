//go:build crashsteps

package crash

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// noticeSteps are passed when a service is told what became of its deliveries.
var noticeSteps = []string{"before-notices", "after-notices"}

const noticesDocument = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, retry: [1s, 1s, 1s, 1s, 1s]}
topics:
  story: {template: message}
  fanfare.deliveries: {template: told}
  fanfare.failures: {template: told}
templates:
  message: {subject: "{{ event.title }}", text: "Hello\n"}
  told: {subject: "{{ event.kind }}", text: "{%% for d in event.deliveries %%}<{{ event.kind }} {{ d.delivery }} {{ d.attempt }}>\n{%% endfor %%}"}
`

// storyReaders is how many read each story.
const storyReaders = 60

// TestAServiceIsToldEachOutcomeOnceWhereverTheServerDies has the server die before it
// tells what was kept, and before it forgets what it told. Each outcome is told, by
// one message, and nothing is told that the record does not have.
func TestAServiceIsToldEachOutcomeOnceWhereverTheServerDies(t *testing.T) {
	t.Parallel()
	heard := newHearing(`<([a-z]+ dlv-\S+ \d+)>`)
	const seed = 1 // whom the relay refuses follows from it: some readers, and not the observer
	w, _, over := relayed(t, "relaxed", noticesDocument, sink.Config{OnMessage: heard.take, Inject: sink.Inject{Seed: seed, PermFail: 0.05}})
	l := w.server.current()
	puts := []client.Subscription{{Topic: fanfare.TopicDeliveries, Channel: "email", To: observer}, {Topic: fanfare.TopicFailures, Channel: "email", To: observer}}
	for i := range storyReaders {
		puts = append(puts, client.Subscription{Topic: story, Channel: "email", To: fmt.Sprintf("reader%d@example.org", i)})
	}
	for i := range puts {
		if _, err := l.client.PutSubscription(t.Context(), puts[i]); err != nil {
			w.t.Fatal(err)
		}
	}
	stop, end := context.WithCancel(w.given)
	defer end()
	var running sync.WaitGroup
	var stories []string
	running.Go(func() { stories = w.stories(stop) })
	w.server.kill(w.server.current())
	for _, step := range slices.Concat([]string{"after-outcome", "after-append"}, noticeSteps) {
		for _, passing := range []int{1, 2} {
			w.dieAt(step, passing)
		}
	}
	w.server.awaitReady(w.server.start())
	end()
	running.Wait()
	outcomes := w.outcomesOf(stories)
	w.until("each outcome is told", func() bool { return heard.missing(outcomes) == "" })
	over()
	heard.check(w, outcomes)
	w.t.Logf("%d outcomes of %d stories", len(outcomes), len(stories))
}

// stories publishes one after the other until stop ends, each when the one before is
// completed, and returns their public ids.
func (w *world) stories(stop context.Context) (ids []string) {
	for stop.Err() == nil {
		var id string
		err := w.server.do(w.given, func(ctx context.Context, api *client.Client) error {
			accepted, err := api.Publish(ctx, story, map[string]any{"title": "x"}, client.PublishOptions{ID: fmt.Sprintf("s-%d", len(ids))})
			id = accepted.ID
			return err
		})
		if err == nil {
			ids = append(ids, id)
			w.until(id+" is completed", func() bool {
				var b fanfare.Broadcast
				err = w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) {
					b, err = api.Event(ctx, id)
					return err
				})
				return err != nil || !b.Stages.Completed.IsZero()
			})
		}
		if err != nil {
			w.fail(err)
			return ids
		}
	}
	return ids
}

// outcomesOf lists what the record has of stories, as the observer is told of it.
func (w *world) outcomesOf(stories []string) map[string]bool {
	w.t.Helper()
	all := map[string]bool{}
	for _, id := range stories {
		err := w.server.do(w.given, func(ctx context.Context, api *client.Client) error {
			for d, err := range api.DeliveriesOf(ctx, id, client.DeliveryQuery{}) {
				if err != nil {
					return err
				}
				for _, a := range d.Attempts {
					all[fmt.Sprintf("%s %s %d", a.Status, d.ID, a.Number)] = true
				}
			}
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}
