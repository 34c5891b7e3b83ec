package condition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
)

// The test runs matches while groups of subscriptions are added and removed. A match sees each
// subscription completely or not at all, and always those that stay.
func TestConcurrentMatchesSeeWholeSubscriptions(t *testing.T) {
	x := newQuakes(t, near)
	params := func(n int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"min_mag":%d,"place":"place %d"}`, n%5, n))
	}
	var steady []Entry
	for i := range 200 {
		e := Entry{Place: fanfare.NewRowID(i%3, uint32(i)), Subscriber: fanfare.RowID(i)}
		switch i % 3 {
		case 0:
			e.Filter = fmt.Sprintf("mag > %d.0", i%4)
		case 1:
			e.Rule, e.Params = "near", json.RawMessage(`{"min_mag":1,"place":"ALASKA"}`)
		}
		steady = append(steady, e)
	}
	mustAdd(t, x, quakes, steady...)
	const groupSize = 50
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 3 {
		writers.Go(func() {
			for round := range 60 {
				var group []Entry
				for i := range groupSize {
					e := Entry{Place: fanfare.NewRowID(10+w, uint32(i)), Subscriber: fanfare.RowID(w)}
					if (i+round)%2 == 0 {
						e.Rule, e.Params = "near", json.RawMessage(fmt.Sprintf(`{"min_mag":%d,"place":"alaska"}`, i%5))
					} else if e.Filter = fmt.Sprintf("place != 'w%d r%d' && mag > %d.0%s", w, round, i%5, strings.Repeat(" && sig != 1", i%7)); i%4 < 2 {
						e.Filter = fmt.Sprintf("mag > %d.0 || place == 'w%d r%d'", i%5, w, round)
					}
					group = append(group, e)
				}
				if err := x.Add(quakes, group); err != nil {
					t.Error(err)
				}
				if round%7 == 6 {
					for _, e := range group {
						x.Remove(quakes, e.Place)
					}
				}
				if round%10 == 9 {
					changed := near
					changed.When += fmt.Sprintf(" && event.mag < %d.0", 100+round)
					if err := x.Define(quakes, Definition{Schema: json.RawMessage(quakeSchema), Rules: []Rule{changed}}); err != nil {
						t.Error(err)
					}
				}
				if err := x.CheckFilter(quakes, fmt.Sprintf("mag > %d.5", round)); err != nil {
					t.Error(err)
				}
				if err := x.CheckParams(quakes, "near", params(round)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		readers.Go(func() {
			var hits []Hit
			for {
				var err error
				hits, err = x.Match(quakes, Event{Data: json.RawMessage(`{"mag":9,"place":"Gulf of Alaska"}`)}, hits[:0])
				if err != nil || !slices.IsSortedFunc(hits, func(a, b Hit) int { return int(int64(a.Place) - int64(b.Place)) }) {
					t.Errorf("hits out of order, or %v", err)
				}
				stayed := 0
				for _, h := range hits {
					if h.Place.Partition() < 3 {
						stayed++
					} else if int(h.Subscriber) != h.Place.Partition()-10 {
						t.Errorf("a hit has another's subscriber: %+v", h)
					}
				}
				if stayed != len(steady) {
					t.Errorf("%d of %d are there", stayed, len(steady))
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}
