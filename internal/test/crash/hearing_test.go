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

const hearingDocument = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, retry: [1s, 1s, 1s, 1s, 1s]}
topics:
  story: {template: message}
  fanfare.subscriptions: {template: ends}
  fanfare.suppressions: {template: lists}
templates:
  message: {subject: "{{ event.title }}", text: "Hello\n"}
  ends: {subject: "{{ event.kind }}", text: "{%% for s in event.subscriptions %%}<{{ event.kind }} {{ s.subscription }}>\n{%% endfor %%}"}
  lists: {subject: "{{ event.kind }}", text: "{%% for s in event.suppressions %%}<{{ event.kind }} {{ s.subscriber }}>\n{%% endfor %%}"}
`

// TestAServiceHearsOfItsPeopleOnceWhereverTheServerDies has the server die before it
// tells what people did, and before it forgets what it told, while they come and go.
// Each end, each suppression and each lift is told, by one message, and nothing else.
func TestAServiceHearsOfItsPeopleOnceWhereverTheServerDies(t *testing.T) {
	t.Parallel()
	heard := newHearing(`<((?:unsubscribed|suppressed|lifted) r\d+)>`)
	w, _, over := relayed(t, "relaxed", hearingDocument, sink.Config{OnMessage: heard.take})
	for _, topic := range []string{fanfare.TopicSubscriptions, fanfare.TopicSuppressions} {
		if _, err := w.server.current().client.PutSubscription(t.Context(), client.Subscription{Topic: topic, Channel: "email", To: observer}); err != nil {
			w.t.Fatal(err)
		}
	}
	stop, end := context.WithCancel(w.given)
	defer end()
	var running sync.WaitGroup
	news := map[string]bool{}
	running.Go(func() { w.comeAndGo(stop, news) })
	w.server.kill(w.server.current())
	for _, step := range slices.Concat([]string{"after-append"}, noticeSteps) {
		for _, passing := range []int{1, 2} {
			w.dieAt(step, passing)
		}
	}
	w.server.awaitReady(w.server.start())
	end()
	running.Wait()
	w.until("all is told", func() bool { return heard.missing(news) == "" })
	over()
	heard.check(w, news)
	w.t.Logf("%d news", len(news))
}

// comeAndGo has people subscribe and unsubscribe until stop ends, one after the other,
// and their addresses suppressed and not suppressed any more. It adds what is to be told.
func (w *world) comeAndGo(stop context.Context, news map[string]bool) {
	for n := 0; stop.Err() == nil; n++ {
		id := fmt.Sprintf("r%d", n)
		address := id + "@example.org"
		for _, one := range []struct {
			told string
			call func(context.Context, *client.Client) error
		}{
			{"", func(ctx context.Context, api *client.Client) error {
				_, err := api.PutSubscription(ctx, client.Subscription{ID: id, Topic: story, Channel: "email", Subscriber: id, To: address})
				return err
			}},
			{"unsubscribed ", func(ctx context.Context, api *client.Client) error { return api.EndSubscription(ctx, id, "") }},
			{"suppressed ", func(ctx context.Context, api *client.Client) error {
				_, err := api.Suppress(ctx, client.Suppression{Address: address, Reason: "complaint"})
				return err
			}},
			{"lifted ", func(ctx context.Context, api *client.Client) error { return api.LiftSuppression(ctx, address) }},
		} {
			if err := w.server.do(w.given, one.call); err != nil {
				w.fail(err)
				return
			}
			if one.told != "" {
				news[one.told+id] = true
			}
		}
	}
}
