//go:build crashsteps

package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// operated is document with one large broadcast after the other that waits for
// approval, and a rate that leaves time to do something.
const operated = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, retry: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]}
topics:
  story:
    template: message
    lane: bulk
    hold_above: 100
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
  note: {template: message, lane: urgent}
templates:
  message:
    subject: "{{ event.title }}"
    text: "Hello {{ subscriber.address }}: {{ event.title }}\n"
`

// A still is a time in which nothing of some broadcasts might leave but what was
// on the wire at its beginning: they were paused, cancelled, or not approved.
type still struct {
	what   string
	events []string // nil: all
	from   time.Time
	to     time.Time // zero: for good
}

// A slow is a time in which a broadcast had a rate.
type slow struct {
	event     string
	perSecond int
	from, to  time.Time
}

// operator does to broadcasts what an operator may, in a random order, and writes
// down from when until when it is to be in force.
type operator struct {
	w      *world
	random *rand.Rand

	events    []string
	cancelled map[string]bool
	waits     map[string]time.Time     // for approval, since
	paused    map[fanfare.Scope]*still // now
	rated     map[string]*slow         // now
	stills    []still
	slows     []slow
	deeds     map[string]int
}

// do calls the API over as many lives as that takes. A call that is
// refused because the broadcast has ended or is in another state counts as not done.
func (o *operator) do(what string, call func(context.Context, *client.Client) error) (sent, acked time.Time, done bool) {
	sent = time.Now()
	err := o.w.server.do(o.w.given, call)
	acked = time.Now()
	switch {
	case err == nil:
		o.deeds[what]++
	case fanfare.CodeOf(err) != fanfare.Conflict:
		o.w.fail(fmt.Errorf("%s: %w", what, err))
	}
	return sent, acked, err == nil
}

// scope is what a pause reaches.
func (o *operator) scope() fanfare.Scope {
	return []fanfare.Scope{
		{Kind: fanfare.ScopeBroadcast, Name: o.event()}, {Kind: fanfare.ScopeBroadcast, Name: o.event()},
		{Kind: fanfare.ScopeChannel, Name: "news/email"}, {Kind: fanfare.ScopeService, Name: "news"},
	}[o.random.IntN(4)]
}

func (o *operator) event() string { return o.events[o.random.IntN(len(o.events))] }

func (o *operator) pause(scope fanfare.Scope) {
	_, acked, done := o.do("pause", func(ctx context.Context, api *client.Client) error { return api.Pause(ctx, scope, "the test") })
	if done && o.paused[scope] == nil {
		s := &still{what: fmt.Sprint("paused ", scope), from: acked}
		if scope.Kind == fanfare.ScopeBroadcast {
			s.events = []string{scope.Name}
		}
		o.paused[scope] = s
	}
}

func (o *operator) resume(scope fanfare.Scope) {
	sent, _, done := o.do("resume", func(ctx context.Context, api *client.Client) error { return api.Resume(ctx, scope, "") })
	if !done && scope.Kind == fanfare.ScopeBroadcast { // it is over, or the answer to a resume that was kept was cut off
		done = o.look(scope.Name).State != "paused"
	}
	if s := o.paused[scope]; s != nil && done {
		s.to = sent
		o.stills = append(o.stills, *s)
		delete(o.paused, scope)
	}
}

func (o *operator) approve(event string) {
	sent := time.Now()
	_, _, done := o.do("approve", func(ctx context.Context, api *client.Client) error { return api.Approve(ctx, event) })
	if since, waits := o.waits[event]; waits {
		if !done && !o.cancelled[event] {
			done = o.look(event).ApprovedBy != "" // the answer to one that was kept was cut off
		}
		if done {
			o.stills = append(o.stills, still{what: "not approved", events: []string{event}, from: since, to: sent})
			delete(o.waits, event)
		}
	}
}

func (o *operator) look(event string) (b fanfare.Broadcast) {
	err := o.w.server.do(o.w.given, func(ctx context.Context, api *client.Client) (err error) {
		b, err = api.Event(ctx, event)
		return err
	})
	if err != nil {
		o.w.fail(err)
	}
	return b
}

func (o *operator) cancel(event string) {
	_, acked, done := o.do("cancel", func(ctx context.Context, api *client.Client) error {
		return api.Cancel(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: event}, "the test")
	})
	if !done && o.look(event).State != "cancelled" { // else the answer was cut off
		return
	}
	o.cancelled[event] = true
	o.stills = append(o.stills, still{what: "cancelled", events: []string{event}, from: acked})
}

// rate sets the rate of a broadcast; 0 is none.
func (o *operator) rate(event string, perSecond int) {
	text := "unlimited"
	if perSecond > 0 {
		text = fmt.Sprint(perSecond, "/s")
	}
	sent, acked, done := o.do("rate", func(ctx context.Context, api *client.Client) error {
		return api.SetRate(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: event}, text)
	})
	if was := o.rated[event]; was != nil {
		was.to = sent
		o.slows = append(o.slows, *was)
		delete(o.rated, event)
	}
	if done && perSecond > 0 {
		o.rated[event] = &slow{event: event, perSecond: perSecond, from: acked}
	}
}

func (o *operator) channelRate(text string) {
	o.do("channel rate", func(ctx context.Context, api *client.Client) error {
		return api.SetRate(ctx, fanfare.Scope{Kind: fanfare.ScopeChannel, Name: "news/email"}, text)
	})
}

// act does one thing. Only the second half of the broadcasts is ever cancelled.
func (o *operator) act() {
	switch deed := o.random.IntN(20); {
	case deed < 5:
		o.pause(o.scope())
	case deed < 10:
		for scope := range o.paused {
			o.resume(scope)
			break
		}
	case deed < 12:
		o.approve(o.event())
	case deed < 14:
		o.cancel(o.events[len(o.events)/2+o.random.IntN(len(o.events)-len(o.events)/2)])
	case deed < 17:
		o.rate(o.event(), []int{0, 100, 500, 2000}[o.random.IntN(4)])
	default:
		o.channelRate([]string{"1000/s", "5000/s", "configured"}[o.random.IntN(3)])
	}
}

// free lets everything go that is still held up, after one was cancelled at least.
func (o *operator) free() {
	if len(o.cancelled) == 0 {
		o.cancel(o.events[len(o.events)-1])
	}
	for scope := range o.paused {
		o.resume(scope)
	}
	for event := range o.rated {
		o.rate(event, 0)
	}
	for event := range o.waits {
		o.approve(event)
	}
	o.channelRate("configured")
}

// TestCountsAreExactWhateverAnOperatorDoes pauses, resumes, approves, cancels and
// slows down broadcasts of CRASH_PEOPLE messages together, in random order, while
// the server is killed.
func TestCountsAreExactWhateverAnOperatorDoes(t *testing.T) {
	t.Parallel()
	const casts = 4
	w := configured(tell(t), "fsync", pgtest.Chosen(t), operated, sink.Inject{TempFail: 0.02, PermFail: 0.01,
		DropBeforeData: 0.001, DropInData: 0.001, DropBeforeReply: 0.001})
	w.subscribe(max(200, setting(t, "CRASH_PEOPLE", 16_000)/casts), 1)
	o := &operator{w: w, random: w.random(1), cancelled: map[string]bool{}, waits: map[string]time.Time{}, paused: map[fanfare.Scope]*still{},
		rated: map[string]*slow{}, deeds: map[string]int{}}
	for n := range casts {
		id, err := w.publish(story, fmt.Sprintf("story-%d", n))
		if err != nil {
			t.Fatal(err)
		}
		w.until(id+" is held", func() bool { return o.look(id).State == fanfare.BroadcastHeld })
		o.events = append(o.events, id)
		o.waits[id] = time.Now()
	}
	kills := setting(t, "CRASH_KILLS", 5)
	o.operate(kills)
	o.free()
	for _, event := range o.events {
		if _, err := w.completed(event); err != nil {
			w.t.Fatalf("%v: %v", err, context.Cause(w.given))
		}
	}
	o.judge(kills)
}

// operate acts until the server was killed so many times.
func (o *operator) operate(kills int) {
	w := o.w
	over := make(chan struct{})
	var acting sync.WaitGroup
	acting.Go(func() {
		for w.given.Err() == nil {
			select {
			case <-over:
				return
			case <-time.After(time.Duration(o.random.Int64N(int64(idle)))):
				o.act()
			}
		}
	})
	killing := w.random(2)
	for range kills {
		w.killSoon(killing, func() {})
		w.server.start()
	}
	w.server.awaitReady(w.server.current())
	close(over)
	acting.Wait()
	if err := context.Cause(w.given); err != nil {
		w.t.Fatal(err)
	}
}

// idle is the longest time between two deeds.
const idle = 100 * time.Millisecond

// judge holds what arrived against what was done.
func (o *operator) judge(kills int) {
	w := o.w
	w.t.Helper()
	for i := range w.events { // of what was cancelled anything may have left
		if o.cancelled[w.events[i].ID] {
			w.topics[i], w.events[i].Audience = "", perhaps(w.readers.audience())
		}
	}
	arrivals := w.sink.arrivals()
	for _, s := range o.stills {
		if n := countIn(arrivals, s.events, s.from, s.to); n > connections {
			w.t.Errorf("%s %v from %v for %v: %d messages arrived, more than the %d that may have been on the wire", s.what, s.events, s.from, s.to.Sub(s.from), n, connections)
		}
	}
	for _, s := range o.slows {
		n, took := countIn(arrivals, []string{s.event}, s.from, s.to), s.to.Sub(s.from)
		if most := int(float64(s.perSecond)*took.Seconds()) + 2*connections + kills; n > most {
			w.t.Errorf("at %d/s %d messages arrived in %v, more than %d", s.perSecond, n, took, most)
		}
	}
	strays := 0
	for event := range o.cancelled {
		reached := map[string]bool{}
		for _, a := range arrivals {
			if a.Event == event {
				reached[a.Recipient] = true
			}
		}
		strays += len(reached) - int(o.look(event).Counts[fanfare.Accepted])
	}
	w.t.Logf("%v, %d times in which nothing might leave, %d at a rate, %d cancelled, of which %d messages had left unrecorded", o.deeds, len(o.stills), len(o.slows), len(o.cancelled), strays)
	if allowed := w.check(kills); strays > allowed {
		w.t.Errorf("%d messages are cancelled and have arrived, more than %d", strays, allowed)
	}
}

// perhaps is an audience of which nobody had to get an event.
func perhaps(all Audience) Audience {
	now := time.Now()
	some := make(Audience, len(all))
	for address := range all {
		some[address] = Person{Timeline{{Sent: time.Time{}, Acked: now, Wants: true}}}
	}
	return some
}

// countIn counts what arrived of some events in a time; zero is no end.
func countIn(arrivals []Arrival, events []string, from, to time.Time) int {
	n := 0
	for _, a := range arrivals {
		if a.At.After(from) && (to.IsZero() || a.At.Before(to)) && (events == nil || slices.Contains(events, a.Event)) {
			n++
		}
	}
	return n
}
