//go:build crashsteps

package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

const quotesDocument = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d, retry: [1s, 1s, 1s, 1s]}
topics:
  quote:
    schema: {type: object, required: [symbol, price, open], properties: {symbol: {type: string}, price: {type: number}, open: {type: number}}}
    key: symbol
    template: quote
    rules:
      - {name: stop, when: "event.symbol == sub.symbol && crosses_below(event.price, sub.level)", params: {symbol: string, level: number}}
      - {name: limit, when: "event.symbol == sub.symbol && crosses_above(event.price, sub.level)", params: {symbol: string, level: number}}
      - {name: move, when: "event.symbol == sub.symbol && crosses((event.price - event.open) / event.open * 100.0, sub.level)", params: {symbol: string, level: number}}
templates:
  quote: {subject: "{{ event.symbol }} {{ event.price }}", text: "{{ event.price }}"}
`

// opened is where every price begins, and what a move is measured from.
const opened = 100

// fires says by itself, for each rule, whether a level is crossed.
var fires = map[string]func(was, is, level float64) bool{
	"stop":  func(was, is, level float64) bool { return was > level && is <= level },
	"limit": func(was, is, level float64) bool { return was < level && is >= level },
	"move": func(was, is, level float64) bool {
		was, is = (was-opened)/opened*100, (is-opened)/opened*100
		return was < level && is >= level || was > level && is <= level
	},
}

// levels are those for which somebody watches each symbol, by rule.
func levels(rule string) (list []float64) {
	for level := 0.0; level <= 2*opened; level += 2.5 {
		if rule == "move" {
			list = append(list, level-opened)
		} else {
			list = append(list, level)
		}
	}
	return list
}

func watcher(rule, symbol string, level float64) string {
	return fmt.Sprintf("%s.%s.%g@example.org", rule, symbol, level)
}

// A tape is the quotes of a symbol in the order in which they were acknowledged.
type tape struct {
	symbol string
	events []string // public ids
	prices []float64
}

// print publishes quotes of a symbol, one after the other, until stop ends.
func (w *world) print(stop context.Context, tape *tape, r *rand.Rand) error {
	pace := time.NewTicker(25 * time.Millisecond)
	defer pace.Stop()
	price := float64(opened)
	for n := 0; ; n++ {
		select {
		case <-stop.Done():
			return nil
		case <-pace.C:
		}
		quote := map[string]any{"symbol": tape.symbol, "price": price, "open": opened}
		var accepted client.Accepted
		err := w.server.do(w.given, func(ctx context.Context, api *client.Client) (err error) {
			accepted, err = api.Publish(ctx, "quote", quote, client.PublishOptions{ID: fmt.Sprintf("%s-%d", tape.symbol, n)})
			return err
		})
		if err != nil {
			return err
		}
		tape.events, tape.prices = append(tape.events, accepted.ID), append(tape.prices, price)
		price = min(max(price+float64(r.IntN(41)-20)/2, 1), 2*opened)
	}
}

func TestEachCrossingFiresOnceWhenTheServerDiesAtADurableStep(t *testing.T) {
	t.Parallel()
	for durability, passings := range map[string][]int{"relaxed": {1, 6}, "fsync": {3}} {
		t.Run(durability, func(t *testing.T) {
			w := configured(tell(t), durability, pgtest.Chosen(t), quotesDocument, sink.Inject{TempFail: 0.02, DropBeforeReply: 0.001})
			tapes := []*tape{{symbol: "A"}, {symbol: "B"}, {symbol: "C"}}
			for _, one := range tapes {
				w.watch(one.symbol)
			}
			stop, cancel := context.WithCancel(w.given)
			defer cancel()
			var running sync.WaitGroup
			for i, one := range tapes {
				running.Go(func() {
					if err := w.print(stop, one, w.random(i)); err != nil {
						w.fail(err)
					}
				})
			}
			kills := 1
			w.server.kill(w.server.current())
			for _, step := range steps {
				for _, passing := range passings {
					w.dieAt(step.name, passing)
					kills++
				}
			}
			w.server.awaitReady(w.server.start())
			cancel()
			running.Wait()
			if err := context.Cause(w.given); err != nil {
				w.t.Fatal(err)
			}
			w.checkCrossings(tapes, kills)
		})
	}
}

// watch subscribes to all levels of a symbol.
func (w *world) watch(symbol string) {
	w.t.Helper()
	for rule := range fires {
		for _, level := range levels(rule) {
			params, _ := json.Marshal(map[string]any{"symbol": symbol, "level": level})
			put := client.Subscription{Topic: "quote", Channel: "email", To: watcher(rule, symbol, level), Rule: rule, Params: params}
			err := w.server.do(w.given, func(ctx context.Context, api *client.Client) error {
				_, err := api.PutSubscription(ctx, put)
				return err
			})
			if err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// checkCrossings holds what arrived against what each price has crossed since the
// one before.
func (w *world) checkCrossings(tapes []*tape, kills int) {
	w.t.Helper()
	type crossing struct{ event, who string }
	expected := map[crossing]bool{}
	quotes := 0
	for _, one := range tapes {
		quotes += len(one.events)
		for i, id := range one.events {
			crossed := 0
			for rule, fires := range fires {
				for _, level := range levels(rule) {
					if i > 0 && fires(one.prices[i-1], one.prices[i], level) {
						expected[crossing{id, watcher(rule, one.symbol, level)}] = true
						crossed++
					}
				}
			}
			b, err := w.completed(id)
			if err != nil {
				w.t.Fatal(err)
			}
			if b.Messages != int64(crossed) {
				w.t.Errorf("%s of %s, from %v to %v, has %d messages, want %d", id, one.symbol, one.prices[max(0, i-1)], one.prices[i], b.Messages, crossed)
			}
		}
	}
	arrived, duplicates := map[crossing]bool{}, 0
	for _, a := range w.sink.arrivals() {
		c := crossing{a.Event, a.Recipient}
		if arrived[c] {
			duplicates++
		}
		arrived[c] = true
	}
	seen := w.sink.close()
	allowed := kills*connections + int(seen.DroppedBeforeReply)
	w.t.Logf("%d kills, %d quotes, %d crossings, %d duplicates of %d allowed", kills, quotes, len(expected), duplicates, allowed)
	for what, found := range map[string][]crossing{"lost": without(expected, arrived), "fired that were none": without(arrived, expected)} {
		if len(found) > 0 {
			w.t.Errorf("%d crossings were %s, such as %v", len(found), what, found[:min(shown, len(found))])
		}
	}
	if duplicates > allowed {
		w.t.Errorf("%d duplicates, more than %d", duplicates, allowed)
	}
	if len(expected) < quotes {
		w.t.Errorf("%d quotes crossed only %d levels", quotes, len(expected))
	}
}

// without lists the keys of a that b has not.
func without[K comparable](a, b map[K]bool) []K {
	return slices.DeleteFunc(slices.Collect(maps.Keys(a)), func(k K) bool { return b[k] })
}
