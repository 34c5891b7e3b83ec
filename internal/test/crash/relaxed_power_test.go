//go:build crashsteps && powerloss

package crash

import (
	"bytes"
	"context"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

const relaxedDocument = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, retry: [1s, 1s, 1s, 1s, 1s]}
topics:
  story: {schema: {type: object, required: [title], properties: {title: {type: string}}}, template: message}
  note: {template: message}
templates:
  message: {subject: "{{ event.title }}", text: "Hello {{ subscriber.address }}\n"}
`

// The setting sync_interval of the test, and what a loss of power may destroy: this time and a second.
const (
	relaxedInterval = 500 * time.Millisecond
	relaxedWindow   = relaxedInterval + time.Second
)

// relaxedReaders is how many get each story.
const relaxedReaders = 30

// An acknowledged is an event or a subscription that the server acknowledged.
type acknowledged struct {
	at     time.Time // after the answer
	id     string    // public
	source string    // the title of an event
}

// sentMails are the mails that the relay has taken, since the first start.
type sentMails struct {
	mu       sync.Mutex
	titles   map[string]string          // by event
	readers  map[string]map[string]bool // by event
	messages map[string]string          // what each Message-ID was used for
	wrong    []string
	taken    int
}

func (s *sentMails) take(_ string, to []string, body []byte) {
	m, err := mail.ReadMessage(bytes.NewReader(body))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || len(to) != 1 {
		s.wrong = append(s.wrong, fmt.Sprintf("a mail to %v that is none: %v", to, err))
		return
	}
	s.taken++
	event, title, id := m.Header.Get("X-Fanfare-Event"), m.Header.Get("Subject"), m.Header.Get("Message-ID")
	once := func(of map[string]string, key, value string) {
		if before, known := of[key]; known && before != value {
			s.wrong = append(s.wrong, fmt.Sprintf("%s was used for %s and for %s", key, before, value))
		}
		of[key] = value
	}
	once(s.titles, event, title)
	once(s.messages, id, event+" to "+to[0])
	if s.readers[event] == nil {
		s.readers[event] = map[string]bool{}
	}
	s.readers[event][to[0]] = true
}

// TestRelaxedLosesOnlyTheLastMomentBeforeThePowerFails cuts the power of a server in durability relaxed. It must start again without help. Only what was
// acknowledged in the sync interval and one second before a loss may be missing, and no number is used for two things.
func TestRelaxedLosesOnlyTheLastMomentBeforeThePowerFails(t *testing.T) {
	t.Parallel()
	of := tell(t)
	w := &world{t: of, seed: seedOf(of), server: newServer(of, "fsync", chosenDatabase(), "FANFARE_SYNC_INTERVAL="+relaxedInterval.String(), "FANFARE_FAULT=power-lost")}
	w.server.durability = "relaxed" // and it loses its power
	w.limit()
	mails := &sentMails{titles: map[string]string{}, readers: map[string]map[string]bool{}, messages: map[string]string{}}
	relay := sink.New(sink.Config{OnMessage: mails.take, Inject: sink.Inject{Seed: w.seed, TempFail: 0.02}})
	address, err := relay.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = relay.Serve() }() // what goes wrong with it shows as a mail that does not come
	t.Cleanup(func() { _ = relay.Close() })
	w.server.awaitReady(w.server.start())
	w.must(func(ctx context.Context, api *client.Client) error {
		_, err := api.Apply(ctx, fmt.Appendf(nil, relaxedDocument, address, connections), false)
		return err
	})
	for i := range relaxedReaders {
		w.must(func(ctx context.Context, api *client.Client) error {
			_, err := api.PutSubscription(ctx, client.Subscription{ID: fmt.Sprint("reader", i), Topic: story, Channel: "email", To: fmt.Sprintf("reader%d@example.org", i)})
			return err
		})
	}
	<-time.After(relaxedWindow) // from now on, these are certain

	stop, end := context.WithCancel(w.given)
	defer end()
	var running sync.WaitGroup
	var events, subscriptions []acknowledged
	running.Go(func() {
		events = w.acknowledge(stop, 15*time.Millisecond, func(ctx context.Context, api *client.Client, n int) (string, string, error) {
			title := fmt.Sprint("title-", n)
			accepted, err := api.Publish(ctx, story, map[string]any{"title": title}, client.PublishOptions{ID: title})
			return accepted.ID, title, err
		})
	})
	running.Go(func() {
		subscriptions = w.acknowledge(stop, 20*time.Millisecond, func(ctx context.Context, api *client.Client, n int) (string, string, error) {
			put, err := api.PutSubscription(ctx, client.Subscription{Topic: note, Channel: "email", To: fmt.Sprintf("subscriber%d@example.org", n)})
			return put.ID, fmt.Sprint("subscriber", n), err
		})
	})
	var losses []time.Time
	random := w.random(1)
	for range setting(t, "CRASH_RELAXED_LOSSES", 8) {
		l := w.server.current()
		w.server.awaitReady(l)
		wait(random, 2*relaxedWindow)
		losses = append(losses, time.Now())
		w.server.kill(l)
		w.server.start()
	}
	w.server.awaitReady(w.server.current())
	end()
	running.Wait()
	if err := context.Cause(w.given); err != nil {
		t.Fatal(err)
	}
	mayMiss := func(a *acknowledged) bool {
		return slices.ContainsFunc(losses, func(loss time.Time) bool {
			return !a.at.After(loss.Add(time.Second)) && a.at.After(loss.Add(-relaxedWindow))
		})
	}
	missing := w.checkRelaxedEvents(events, mayMiss, mails)
	gone := w.checkRelaxedSubscriptions(subscriptions, mayMiss)
	mails.mu.Lock()
	defer mails.mu.Unlock()
	for _, wrong := range mails.wrong {
		w.t.Error(wrong)
	}
	t.Logf("%d losses, slowest start %v; of %d acknowledged events %d are missing, of %d subscriptions %d; %d mails to %d deliveries", len(losses), w.server.slowest.Round(time.Millisecond),
		len(events), missing, len(subscriptions), gone, mails.taken, len(mails.messages))
}

// acknowledge makes requests until stop ends.
func (w *world) acknowledge(stop context.Context, every time.Duration, request func(ctx context.Context, api *client.Client, n int) (id, source string, err error)) (all []acknowledged) {
	pace := time.NewTicker(every)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop.Done():
			return all
		case <-pace.C:
		}
		var a acknowledged
		err := w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) {
			a.id, a.source, err = request(ctx, api, n)
			return err
		})
		if err != nil {
			w.fail(err)
			return all
		}
		a.at = time.Now()
		all = append(all, a)
	}
}

// checkIDs checks that no id was given twice.
func (w *world) checkIDs(all []acknowledged) {
	w.t.Helper()
	given := map[string]string{}
	for _, a := range all {
		if before, used := given[a.id]; used {
			w.t.Errorf("the id %s was given to %s and to %s", a.id, before, a.source)
		}
		given[a.id] = a.source
	}
}

// checkRelaxedEvents checks each event that was acknowledged, and returns how many are missing.
func (w *world) checkRelaxedEvents(events []acknowledged, mayMiss func(*acknowledged) bool, mails *sentMails) (missing int) {
	w.t.Helper()
	w.checkIDs(events)
	for i := range events {
		e := &events[i]
		var b fanfare.Broadcast
		find := func() error {
			return w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) { b, err = api.Event(ctx, e.id); return err })
		}
		err := find()
		if fanfare.CodeOf(err) == fanfare.NotFound && err != nil {
			if missing++; !mayMiss(e) {
				w.t.Errorf("%s, %s is missing", e.id, e.source)
			}
			continue
		}
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for limit := time.Now().Add(patience); err == nil && b.Stages.Completed.IsZero(); <-look.C {
			if err = find(); time.Now().After(limit) {
				status, _ := w.server.current().client.Status(w.given)
				w.t.Fatalf("in %v, %s was not completed: %+v; the bus: %+v", patience, e.id, b, status.Bus)
			}
		}
		if err != nil {
			w.t.Fatalf("%s, %s: %v", e.id, e.source, err)
		}
		if b.SourceID != e.source || b.Messages != relaxedReaders {
			w.t.Errorf("%s was %s, and is %s with %d messages", e.id, e.source, b.SourceID, b.Messages)
		}
		mails.mu.Lock()
		if title := mails.titles[e.id]; title != e.source || len(mails.readers[e.id]) != relaxedReaders {
			w.t.Errorf("%s is %s; the mails about it are titled %q and went to %d people", e.id, e.source, title, len(mails.readers[e.id]))
		}
		mails.mu.Unlock()
	}
	return missing
}

// checkRelaxedSubscriptions does the same for subscriptions.
func (w *world) checkRelaxedSubscriptions(subscriptions []acknowledged, mayMiss func(*acknowledged) bool) (missing int) {
	w.t.Helper()
	w.checkIDs(subscriptions)
	for i := range subscriptions {
		s := &subscriptions[i]
		var found client.SubscriptionRecord
		err := w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) {
			found, err = api.Subscription(ctx, s.id)
			return err
		})
		switch {
		case err != nil && fanfare.CodeOf(err) == fanfare.NotFound:
			if missing++; !mayMiss(s) {
				w.t.Errorf("%s of %s is missing", s.id, s.source)
			}
		case err != nil:
			w.t.Fatal(err)
		case !strings.HasPrefix(found.To, s.source+"@"):
			w.t.Errorf("%s was of %s, and is of %s", s.id, s.source, found.To)
		}
	}
	return missing
}
