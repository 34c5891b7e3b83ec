package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
)

// A Line is one subscription in the format of the bulk import. It has a rule with its params, or a
// filter.
type Line struct {
	Topic   string `json:"topic"`
	Channel string `json:"channel"`
	To      string `json:"to"`
	Rule    string `json:"rule,omitempty"`
	Params  any    `json:"params,omitempty"` // a struct of the example
	Filter  string `json:"filter,omitempty"`
}

// subscriptions yields n subscriptions to the example's topic. Every tenth is a second
// subscription of the previous person, who still gets only one mail for each event.
func (x *example) subscriptions(n int, seed uint64) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		next := x.wishes(seed)
		person := 0
		for i := range n {
			if i%10 != 9 {
				person++
			}
			line := next()
			line.Topic, line.Channel = x.topic, "email"
			line.To = fmt.Sprintf("person%06d@example.net", person)
			if !yield(line) {
				return
			}
		}
	}
}

// writeLines writes n subscriptions as NDJSON and calls see for each.
func (x *example) writeLines(w io.Writer, n int, seed uint64, see func(Line)) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for line := range x.subscriptions(n, seed) {
		see(line)
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

func filter(format string, args ...any) Line { return Line{Filter: fmt.Sprintf(format, args...)} }

// condition returns a text that is the same only for equal conditions.
func (l *Line) condition() string { return fmt.Sprint(l.Rule, l.Params, l.Filter) }

// newRandom returns the random source of an example for a seed.
func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }

// A weighted list is a list to draw from at random, with a weight for each value.
type weighted[T any] struct {
	items []T
	sums  []float64 // running sums of the weights
}

func (w *weighted[T]) add(item T, weight float64) {
	sum := weight
	if last := len(w.sums) - 1; last >= 0 {
		sum += w.sums[last]
	}
	w.items, w.sums = append(w.items, item), append(w.sums, sum)
}

func (w *weighted[T]) draw(random *rand.Rand) T {
	x := random.Float64() * w.sums[len(w.sums)-1]
	i, _ := slices.BinarySearch(w.sums, x)
	return w.items[min(i, len(w.items)-1)]
}
