package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cluster/link"
	"fanfare.dev/fanfare/internal/condition"
)

// A database has the active subscriptions of the tests. A change is in the database before it is in the index, as in the
// registry.
type database struct {
	mu   sync.Mutex
	rows map[fanfare.RowID]row
	slow func() // called for each row that is read
}

type row struct {
	key   condition.Key
	entry condition.Entry
}

func (d *database) put(key condition.Key, e condition.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows[e.Place] = row{key, e}
}

func (d *database) remove(place fanfare.RowID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.rows, place)
}

// visit reads one row after the other: the rows may change meanwhile.
func (d *database) visit(_ context.Context, visit func(condition.Key, *condition.Entry) error) error {
	d.mu.Lock()
	places := slices.Sorted(maps.Keys(d.rows))
	d.mu.Unlock()
	for _, p := range places {
		d.mu.Lock()
		r, ok := d.rows[p]
		d.mu.Unlock()
		if d.slow != nil {
			d.slow()
		}
		if !ok {
			continue
		}
		if err := visit(r.key, &r.entry); err != nil {
			return err
		}
	}
	return nil
}

var quotes, news = condition.Key{Service: "shop", Topic: "quotes"}, condition.Key{Service: "shop", Topic: "news"}

func definition() condition.Definition {
	return condition.Definition{Rules: []condition.Rule{{Name: "above", When: "event.price > sub.price", Params: map[string]string{"price": "number"}}}}
}

// randomEntry returns a subscription with a filter, with a rule, or to all events.
func randomEntry(random *rand.Rand, place fanfare.RowID) condition.Entry {
	e := condition.Entry{Place: place, Subscriber: place + fanfare.RowID(random.IntN(3)), Channel: uint16(random.IntN(3)), Slot: uint16(random.IntN(2))}
	switch random.IntN(4) {
	case 0:
	case 1:
		e.Filter = fmt.Sprintf(`event.name.startsWith("%c")`, 'a'+random.IntN(4))
	case 2:
		e.Filter = fmt.Sprintf("event.price > %d.0", random.IntN(10))
	default:
		e.Rule, e.Params = "above", json.RawMessage(fmt.Sprintf(`{"price":%d}`, random.IntN(10)))
	}
	return e
}

func randomEvent(random *rand.Rand) condition.Event {
	return condition.Event{
		Data:       json.RawMessage(fmt.Sprintf(`{"name":"%c","price":%d.5}`, 'a'+random.IntN(4), random.IntN(10))),
		Attributes: condition.Attributes{ID: "1", Source: "/s", Type: "t", Time: time.Date(2026, 11, 26, 1, 2, 3, 4, time.UTC), Extensions: map[string]json.RawMessage{"level": json.RawMessage(`"high"`)}},
	}
}

// attach opens a link between a feed and a new copy. cut ends it.
func attach(t *testing.T, f *Feed, name string) (cut func()) {
	t.Helper()
	a, b := net.Pipe()
	var running sync.WaitGroup
	running.Go(func() { f.Attach(a, name, "v1") })
	running.Go(func() { _ = Serve(context.Background(), b, slog.New(slog.DiscardHandler)) })
	return func() { _ = b.Close(); running.Wait() }
}

func newTestFeed(t *testing.T, db *database) *Feed {
	t.Helper()
	f := NewFeed(FeedOptions{Index: condition.New(), Subscriptions: db.visit, Logger: slog.New(slog.DiscardHandler)})
	for _, key := range []condition.Key{quotes, news} {
		if err := f.Define(key, definition()); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// Copies are attached at different times of a random sequence of changes. Each event has the same hits in the copies as in
// the index, right after each change.
func TestACopyHasTheHitsOfTheIndex(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 7))
				db := &database{rows: map[fanfare.RowID]row{}}
				f := newTestFeed(t, db)
				keyOf := func(place fanfare.RowID) condition.Key { return []condition.Key{quotes, news}[place%2] }
				change := func() {
					place := fanfare.RowID(1 + random.IntN(60))
					key := keyOf(place)
					if random.IntN(4) == 0 {
						db.remove(place)
						f.Remove(key, place)
						return
					}
					e := randomEntry(random, place)
					db.put(key, e)
					if err := f.Add(key, []condition.Entry{e}); err != nil {
						t.Fatal(err)
					}
				}
				changing := atomic.Int32{}
				db.slow = func() { // changes while the copy is filled
					if changing.Add(1) <= 100 && random.IntN(2) == 0 {
						change()
					}
				}
				for range 100 {
					change()
				}
				var cuts []func()
				for i := range 400 {
					if i%100 == 0 {
						changing.Store(0)
						cuts = append(cuts, attach(t, f, fmt.Sprint("node", len(cuts)%3)))
						synctest.Wait() // filled; change is called by one goroutine at a time
					}
					change()
					key, event := keyOf(fanfare.RowID(random.IntN(2))), randomEvent(random)
					want, err := f.Match(key, event, nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, n := range f.Nodes() {
						got, err := n.Match(t.Context(), key, []condition.Event{event, event})
						if err != nil {
							t.Fatal(err)
						}
						for _, hits := range got {
							if !slices.Equal(hits, want) && len(hits)+len(want) > 0 {
								t.Fatalf("node %s after %d changes: %v, want %v", n.Name(), i, hits, want)
							}
						}
					}
				}
				if len(f.Nodes()) != 3 {
					t.Errorf("%d nodes are ready", len(f.Nodes()))
				}
				f.Close()
				for _, cut := range cuts {
					cut()
				}
			})
		})
	}
}

// A new definition reaches the copies: an added rule, and its subscriptions.
func TestACopyGetsNewDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &database{rows: map[fanfare.RowID]row{}}
		f := newTestFeed(t, db)
		cut := attach(t, f, "one")
		synctest.Wait()
		def := definition()
		def.Rules = append(def.Rules, condition.Rule{Name: "below", When: "event.price < sub.price", Params: map[string]string{"price": "number"}})
		if err := f.Define(quotes, def); err != nil {
			t.Fatal(err)
		}
		e := condition.Entry{Place: 5, Subscriber: 5, Rule: "below", Params: json.RawMessage(`{"price":3}`)}
		if err := f.Add(quotes, []condition.Entry{e}); err != nil {
			t.Fatal(err)
		}
		got, err := f.Nodes()[0].Match(t.Context(), quotes, []condition.Event{{Data: json.RawMessage(`{"price":2}`)}, {Data: json.RawMessage(`{"price":4}`)}, {Data: json.RawMessage(`{`)}})
		if err != nil || len(got) != 3 || len(got[0]) != 1 || got[0][0].Rule != 1 || got[1] == nil || len(got[1]) != 0 || got[2] != nil {
			t.Errorf("%v, %v", got, err)
		}
		f.Close()
		cut()
	})
}

func TestAMatchOfANodeThatIsGoneFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFeed(t, &database{rows: map[fanfare.RowID]row{}})
		cut := attach(t, f, "one")
		synctest.Wait()
		n := f.Nodes()[0]
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := n.Match(ctx, quotes, make([]condition.Event, 1)); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		cut()
		if _, err := n.Match(t.Context(), quotes, make([]condition.Event, 1)); !errors.Is(err, link.ErrEnded) {
			t.Errorf("after the end of the link: %v", err)
		}
		if len(f.Nodes()) != 0 {
			t.Errorf("%d nodes are left", len(f.Nodes()))
		}
		if err := f.Add(quotes, []condition.Entry{{Place: 1, Subscriber: 1}}); err != nil {
			t.Error(err)
		}
		f.Close()
	})
}

// An event that is sent while a change is in the index, but not yet on its way to the copies, is matched with the change: the
// caller has seen the new definition, and uses the numbers of its rules.
func TestAMatchIncludesAChangeThatIsBeingSent(t *testing.T) {
	f := newTestFeed(t, &database{rows: map[fanfare.RowID]row{}})
	cut := attach(t, f, "one")
	for len(f.Nodes()) == 0 {
		<-time.After(time.Millisecond)
	}
	def := definition()
	def.Rules = append([]condition.Rule{{Name: "below", When: "event.price < sub.price", Params: map[string]string{"price": "number"}}}, def.Rules...)
	if err := f.Define(news, def); err != nil {
		t.Fatal(err)
	}
	if err := f.Add(news, []condition.Entry{{Place: 5, Subscriber: 5, Rule: "below", Params: json.RawMessage(`{"price":3}`)}}); err != nil {
		t.Fatal(err)
	}
	def.Rules = append(slices.Clone(def.Rules[1:]), def.Rules[0])
	n, matched := f.Nodes()[0], make(chan [][]fanfare.Hit)
	f.mu.Lock() // as in Define
	if err := f.Index.Define(news, def); err != nil {
		t.Fatal(err)
	}
	go func() {
		hits, err := n.Match(context.Background(), news, []condition.Event{{Data: json.RawMessage(`{"price":2}`)}})
		if err != nil {
			t.Error(err)
		}
		matched <- hits
	}()
	<-time.After(50 * time.Millisecond) // more than the match needs
	f.broadcast(kindDefine, definePayload(news, &def))
	f.mu.Unlock()
	if hits, want := <-matched, int16(len(def.Rules)-1); len(hits) != 1 || len(hits[0]) != 1 || hits[0][0].Rule != want {
		t.Errorf("%+v, want rule %d", hits, want)
	}
	f.Close()
	cut()
}

// A node that does not reply in time gets no more events until it replies: each of them would wait for it.
func TestANodeThatRepliesTooLateGetsNoEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFeed(t, &database{rows: map[fanfare.RowID]row{}})
		a, b := net.Pipe()
		requests := make(chan uint32, 1)
		var running sync.WaitGroup
		running.Go(func() { f.Attach(a, "one", "v1") })
		far := link.New(context.Background(), b, 0)
		running.Go(func() {
			_ = far.Run(func(in link.Frame) error {
				switch in.Kind {
				case kindLoaded:
					far.SendNow(kindReady, 0)
				case kindMatch:
					requests <- in.Stream
				}
				return nil
			})
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.Nodes()[0].Match(ctx, quotes, make([]condition.Event, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if n := len(f.Nodes()); n != 0 {
			t.Errorf("%d nodes get events", n)
		}
		far.SendNow(kindHits, <-requests, []byte{0})
		synctest.Wait()
		if n := len(f.Nodes()); n != 1 {
			t.Errorf("%d nodes get events after the reply", n)
		}
		f.Close()
		running.Wait()
	})
}
