//go:build crashsteps

package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// world is a server under test, the capture server behind it, and everybody
// who uses it.
type world struct {
	t      *teller
	seed   uint64
	sink   *capture
	server *server
	given  context.Context // ends when something failed, or patience does
	fail   context.CancelCauseFunc

	readers, noted people
	changes, ends  int // of subscriptions, by the churning clients

	recipients int // of one message at most; 0: each has its own
	seen       int // number of mails that arrivedOnce has counted

	open atomic.Int64 // stories that are acknowledged and not completed

	mu     sync.Mutex
	events []Event  // in the order of their acknowledgements
	topics []string // of the events; "" of a message, which has its audience
}

// newWorld starts everything: a server that is ready and configured, with n
// readers. The answers of the capture server are those of experiment N1b, with
// one connection in a thousand dropped in each of three ways; each waits.
func newWorld(t *testing.T, durability string, n int, wait time.Duration) *world {
	t.Helper()
	return newWorldOn(tell(t), durability, n, wait, pgtest.Chosen(t))
}

// newWorldOn is newWorld with the URL of the server's database, and settings of the
// server as variables of its environment.
func newWorldOn(t *teller, durability string, n int, wait time.Duration, database string, env ...string) *world {
	t.Helper()
	w := configured(t, durability, database, document, sink.Inject{TempFail: 0.02, PermFail: 0.01, Delay: wait, DelayShare: min(1, float64(wait)),
		DropBeforeData: 0.001, DropInData: 0.001, DropBeforeReply: 0.001}, env...)
	w.subscribe(n, 20)
	return w
}

// configured starts a capture server and a server with a document, which has a
// place for the address of the first and one for the number of connections.
func configured(t *teller, durability, database, document string, inject sink.Inject, env ...string) *world {
	t.Helper()
	w := &world{t: t, seed: seedOf(t), server: newServer(t, durability, database, env...)}
	w.begin(document, inject)
	return w
}

// begin starts the capture server and the server.
func (w *world) begin(document string, inject sink.Inject) {
	t := w.t
	t.Helper()
	w.limit()
	inject.Seed = w.seed
	w.sink = startSink(t, inject)
	l := w.server.start()
	w.server.awaitReady(l)
	if _, err := l.client.Apply(t.Context(), fmt.Appendf(nil, document, w.sink.address, connections), false); err != nil {
		t.Fatal(err)
	}
}

// limit bounds the time of a test.
func (w *world) limit() {
	limited, cancel := context.WithTimeout(w.t.Context(), 30*patience)
	w.t.Cleanup(cancel)
	w.given, w.fail = context.WithCancelCause(limited)
}

func (w *world) random(stream int) *rand.Rand { return rand.New(rand.NewPCG(w.seed, uint64(stream))) }

// until waits for a condition, as long as nothing has failed.
func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	limit := time.After(patience)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-w.given.Done():
			w.t.Fatalf("waiting that %s: %v", what, context.Cause(w.given))
		case <-limit:
			w.t.Fatalf("in %v it did not come about that %s", patience, what)
		}
	}
}

// publish sends an event until it is acknowledged, always under the same id,
// and returns its public id.
func (w *world) publish(topic, id string) (string, error) {
	return w.publishWith(topic, client.PublishOptions{ID: id})
}

func (w *world) publishWith(topic string, o client.PublishOptions) (string, error) {
	sent := time.Now()
	var accepted client.Accepted
	err := w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) {
		accepted, err = api.Publish(ctx, topic, map[string]any{"title": o.ID, "level": 5}, o)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("event %s could not be published: %w", o.ID, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, Event{ID: accepted.ID, Sent: sent})
	w.topics = append(w.topics, topic)
	return accepted.ID, nil
}

// completed waits until the server says that an event is completed, as long as
// mails arrive: what is more urgent goes first, and a busy machine may come to
// nothing else for long.
func (w *world) completed(id string) (fanfare.Broadcast, error) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	var last int64
	for limit := time.Now().Add(patience); ; <-look.C {
		var b fanfare.Broadcast
		err := w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) {
			b, err = api.Event(ctx, id)
			return err
		})
		if err != nil || !b.Stages.Completed.IsZero() {
			return b, err
		}
		seen, err := w.sink.sizeBytes()
		if err != nil {
			return b, err
		}
		if seen != last {
			last, limit = seen, time.Now().Add(patience)
		}
		if time.Now().After(limit) {
			return b, fmt.Errorf("for %v nothing arrives, and event %s stays %s: %v of %d", patience, id, b.State, b.Counts, b.Messages)
		}
	}
}

// tell publishes stories one after the other until stop ends, and waits for the
// last one's completion.
func (w *world) tell(stop context.Context) error {
	for n := 0; stop.Err() == nil; n++ {
		id, err := w.publish(story, fmt.Sprintf("story-%d", n))
		if err != nil {
			return err
		}
		w.open.Add(1)
		_, err = w.completed(id)
		w.open.Add(-1)
		if err != nil {
			return err
		}
		w.settled(id)
	}
	return nil
}

func (w *world) settled(id string) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.events {
		if w.events[i].ID == id {
			w.events[i].Settled = now
		}
	}
}

// drop publishes notes, forty a second, until stop ends.
func (w *world) drop(stop context.Context, who int) error {
	pace := time.NewTicker(25 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop.Done():
			return nil
		case <-pace.C:
		}
		if _, err := w.publish(note, fmt.Sprintf("note-%d-%d", who, n)); err != nil {
			return err
		}
	}
}

// write sends messages to people who are named, twenty a second, until stop
// ends: each to somebody who is known and to somebody who is new, and always
// under the same key.
func (w *world) write(stop context.Context) error {
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop.Done():
			return nil
		case <-pace.C:
		}
		key, sent := fmt.Sprintf("message-%d", n), time.Now()
		named := Audience{}
		request := client.MessageRequest{Channel: "email", Lane: "urgent", Content: &client.MessageContent{Subject: key, Text: "Hello {{ sub.name }}\n"}}
		for _, name := range []string{fmt.Sprintf("named%d", n%10), fmt.Sprintf("new%d", n)} {
			address := name + "@example.org"
			before := sent.Add(-time.Second) // who is named wants it, as one who subscribed before
			named[address] = Person{Timeline{{Sent: before, Acked: before, Wants: true}}}
			request.Recipients = append(request.Recipients, client.To{To: address, Data: json.RawMessage(fmt.Sprintf(`{"name":%q}`, name))})
		}
		var message client.Message
		err := w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) {
			message, err = api.Send(ctx, request, client.SendOptions{Key: key})
			return err
		})
		if err != nil || message.Recipients != len(named) {
			return fmt.Errorf("%s could not be sent: %+v, %w", key, message, err)
		}
		w.mu.Lock()
		w.events = append(w.events, Event{ID: message.Event, Sent: sent, Audience: named})
		w.topics = append(w.topics, "")
		w.mu.Unlock()
	}
}

// during runs a scenario under load: stories, notes, messages, and changes of
// subscriptions. It returns when all that was begun is done. A scenario that
// takes long looks at given, which ends when the load fails; until does.
func (w *world) during(scenario func()) {
	w.t.Helper()
	stop, cancel := context.WithCancel(w.given)
	defer cancel()
	churned := w.churning(stop, 4)
	var running sync.WaitGroup
	for _, load := range []func() error{
		func() error { return w.tell(stop) },
		func() error { return w.drop(stop, 1) },
		func() error { return w.drop(stop, 2) },
		func() error { return w.write(stop) },
	} {
		running.Go(func() {
			if err := load(); err != nil {
				w.fail(err)
			}
		})
	}
	scenario()
	cancel()
	running.Wait()
	churned()
	if err := context.Cause(w.given); err != nil {
		w.t.Fatal(err)
	}
}
