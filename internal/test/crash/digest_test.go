//go:build crashsteps

package crash

import (
	"bytes"
	"context"
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

const digestsDocument = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, retry: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]}
topics:
  bulletin:
    schema: {type: object, required: [title], properties: {title: {type: string}}}
    template: one
    digest: {template: several, max: 1000}
templates:
  one: {subject: "{{ event.title }}", text: "<{{ event.title }}>\n"}
  several: {subject: "{{ count }} bulletins", text: "{%% for item in items %%}<{{ item.event.title }}>\n{%% endfor %%}({{ more }} more)\n"}
`

// cadences are those of the readers. Some change theirs all the time.
var cadences = []string{"window 1s", "window 2s", "immediate"}

// bulletinReaders is how many there are, of whom every third changes the cadence.
const bulletinReaders = 60

func bulletinReader(i int) string { return fmt.Sprintf("reader%d@example.org", i) }

// gatherSteps are the durable steps of what waits for digests.
var gatherSteps = []string{
	"before-run-publish", "after-run-publish", "before-run-forgotten", "after-run-forgotten", "before-carry", "after-carry",
}

// digestSteps are those that digests share with all events.
var digestSteps = []string{
	"before-manifest", "after-manifest", "before-publish", "after-publish", "after-event-ack",
	"before-body", "after-reply", "before-outcome", "after-outcome", "before-batch-ack",
}

// shelf is what arrived: who was told what by which messages, and how often each of
// these came.
type shelf struct {
	mu   sync.Mutex
	told map[string]map[string]map[string]bool // reader, title, Message-ID
	came map[string]int                        // Message-ID
	bad  []string
}

var titles = regexp.MustCompile(`<(b-\d+)>`)

func (s *shelf) take(_ string, to []string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := mail.ReadMessage(bytes.NewReader(body))
	if err != nil || len(to) != 1 {
		s.bad = append(s.bad, fmt.Sprintf("a message to %v that is none: %v", to, err))
		return
	}
	id := m.Header.Get("Message-ID")
	s.came[id]++
	_, text, _ := bytes.Cut(body, []byte("\r\n\r\n"))
	all := titles.FindAllSubmatch(text, -1)
	if len(all) == 0 || bytes.Contains(text, []byte(" more)")) && !bytes.Contains(text, []byte("(0 more)")) {
		s.bad = append(s.bad, fmt.Sprintf("%s to %s says %q", id, to[0], text))
	}
	reader := s.told[to[0]]
	if reader == nil {
		reader = map[string]map[string]bool{}
		s.told[to[0]] = reader
	}
	seen := map[string]bool{}
	for _, match := range all {
		title := string(match[1])
		if seen[title] {
			s.bad = append(s.bad, fmt.Sprintf("%s to %s tells of %s twice", id, to[0], title))
		}
		seen[title] = true
		if reader[title] == nil {
			reader[title] = map[string]bool{}
		}
		reader[title][id] = true
	}
}

// TestEachEventIsInOneDigestWhereverTheServerDies has the server die at each durable
// step, and at random moments, while events are gathered for windows, digests are
// sent, and readers change when they are told. Everybody is told of each event in one
// message, and messages come twice no more often than others do.
func TestEachEventIsInOneDigestWhereverTheServerDies(t *testing.T) {
	t.Parallel()
	for durability, passings := range map[string][]int{"relaxed": {1, 4}, "fsync": {2}} {
		t.Run(durability, func(t *testing.T) {
			took := &shelf{told: map[string]map[string]map[string]bool{}, came: map[string]int{}}
			w, relay, over := relayed(t, durability, digestsDocument, sink.Config{OnMessage: took.take,
				Inject: sink.Inject{TempFail: 0.02, DropBeforeData: 0.002, DropInData: 0.002, DropBeforeReply: 0.002}})
			for i := range bulletinReaders {
				if err := w.choose(i, cadences[i%len(cadences)]); err != nil {
					w.t.Fatal(err)
				}
			}
			stop, end := context.WithCancel(w.given)
			defer end()
			var running sync.WaitGroup
			var events []string
			changes := 0
			running.Go(func() { events = w.bulletins(stop) })
			running.Go(func() { changes = w.changeMinds(stop) })
			kills := 1
			w.server.kill(w.server.current())
			for _, step := range slices.Concat(digestSteps, gatherSteps) {
				for _, passing := range passings {
					w.dieAt(step, passing)
					kills++
				}
			}
			random := w.random(1)
			w.server.start()
			for range setting(t, "CRASH_KILLS", 5) {
				w.killSoon(random, func() {})
				kills++
				w.server.start()
			}
			w.server.awaitReady(w.server.current())
			end()
			running.Wait()
			w.digestsGone(events)
			over()
			allowed := kills*connections + int(relay.Stats().DroppedBeforeReply)
			w.checkDigests(took, len(events), allowed)
			t.Logf("%d kills, %d events, %d changes of cadence", kills, len(events), changes)
		})
	}
}

// choose has a reader told at some cadence.
func (w *world) choose(i int, cadence string) error {
	put := client.Subscription{ID: fmt.Sprintf("b%d", i), Topic: "bulletin", Channel: "email", To: bulletinReader(i), Cadence: cadence}
	return w.server.do(w.given, func(ctx context.Context, api *client.Client) error {
		_, err := api.PutSubscription(ctx, put)
		return err
	})
}

// changeMinds changes cadences until stop ends, and returns how many.
func (w *world) changeMinds(stop context.Context) (n int) {
	pace, random := time.NewTicker(30*time.Millisecond), w.random(2)
	defer pace.Stop()
	for {
		select {
		case <-stop.Done():
			return n
		case <-pace.C:
		}
		if err := w.choose(3*random.IntN(bulletinReaders/3), cadences[random.IntN(len(cadences))]); err != nil {
			if fanfare.CodeOf(err) == fanfare.Unavailable {
				continue
			}
			w.fail(err)
			return n
		}
		n++
	}
}

// bulletins publishes b-0, b-1, ... until stop ends, and returns their public ids.
func (w *world) bulletins(stop context.Context) (ids []string) {
	pace := time.NewTicker(25 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-stop.Done():
			return ids
		case <-pace.C:
		}
		title := fmt.Sprintf("b-%d", len(ids))
		err := w.server.do(w.given, func(ctx context.Context, api *client.Client) error {
			accepted, err := api.Publish(ctx, "bulletin", map[string]any{"title": title}, client.PublishOptions{ID: title})
			if err == nil {
				ids = append(ids, accepted.ID)
			}
			return err
		})
		if err != nil {
			w.fail(err)
			return ids
		}
	}
}

// digestsGone waits until all that was gathered has gone out and is completed.
func (w *world) digestsGone(events []string) {
	w.t.Helper()
	var open fanfare.Broadcast
	look := func(id string) (b fanfare.Broadcast) {
		err := w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) {
			b, err = api.Event(ctx, id)
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
		return b
	}
	over := map[string]bool{}
	gone := func(id string) bool {
		if !over[id] {
			open = look(id)
			over[id] = !open.Stages.Completed.IsZero()
		}
		return over[id]
	}
	for _, id := range events {
		w.until("event "+id+" and its digests are completed", func() bool {
			if !gone(id) {
				return false
			}
			for _, g := range look(id).Gathered {
				if g.Digest == "" || !gone(g.Digest) {
					return false
				}
			}
			return true
		})
	}
}

// checkDigests holds what arrived against what everybody was to be told.
func (w *world) checkDigests(s *shelf, events, allowed int) {
	w.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var lost, twice []string
	for i := range bulletinReaders {
		for n := range events {
			title := fmt.Sprintf("b-%d", n)
			switch by := s.told[bulletinReader(i)][title]; {
			case len(by) == 0:
				lost = append(lost, bulletinReader(i)+" "+title)
			case len(by) > 1:
				twice = append(twice, fmt.Sprint(bulletinReader(i), " ", title, " ", by))
			}
		}
	}
	duplicates, messages := 0, len(s.came)
	for _, n := range s.came {
		duplicates += n - 1
	}
	w.t.Logf("%d messages told %d readers of %d events, %d duplicates of %d allowed", messages, bulletinReaders, events, duplicates, allowed)
	for what, found := range map[string][]string{"lost": lost, "told in two messages": twice, "wrong": s.bad} {
		if len(found) > 0 {
			w.t.Errorf("%d were %s, such as %q", len(found), what, found[:min(shown, len(found))])
		}
	}
	if duplicates > allowed {
		w.t.Errorf("%d duplicates, more than %d", duplicates, allowed)
	}
	if digests := messages - events*bulletinReaders/3; events == 0 || digests <= 0 || messages > events*bulletinReaders*3/4 {
		w.t.Errorf("%d messages for %d events: nothing was told together", messages, events)
	}
}
