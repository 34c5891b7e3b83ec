package demo

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
)

// A Line is one subscription as the bulk import takes it, one JSON object a line.
// It has a rule with its params, or a filter.
type Line struct {
	Topic   string  `json:"topic"`
	Channel string  `json:"channel"`
	To      string  `json:"to"`
	Rule    string  `json:"rule,omitempty"`
	Params  *Params `json:"params,omitempty"`
	Filter  string  `json:"filter,omitempty"`
}

// Params are those of the rules of examples/earthquakes.
type Params struct {
	MinMag float64 `json:"min_mag"`
	Place  string  `json:"place,omitempty"` // of the rule near
}

// Subscriptions yields n subscriptions to the topic of examples/earthquakes, with
// different wishes: near a place, from a strength on, shallow, deep, with a
// tsunami message, significant. Every tenth is a second one of the person before,
// who still gets one mail for each event.
func Subscriptions(n int, seed uint64) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		w := newWishes(seed)
		person := 0
		for i := range n {
			if i%10 != 9 {
				person++
			}
			line := w.next()
			line.Topic, line.Channel = "earthquake", "email"
			line.To = fmt.Sprintf("person%06d@example.net", person)
			if !yield(line) {
				return
			}
		}
	}
}

type wishes struct {
	random  *rand.Rand
	regions []region
	weights []float64 // running sums
}

func newWishes(seed uint64) *wishes {
	w := &wishes{random: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), regions: regions()}
	sum := 0.0
	for _, r := range w.regions {
		sum += math.Sqrt(float64(r.events)) // people live in quiet places too
		w.weights = append(w.weights, sum)
	}
	return w
}

func (w *wishes) next() Line {
	switch kind := w.random.IntN(100); {
	case kind < 45:
		return Line{Rule: "near", Params: &Params{MinMag: w.magnitude(3.6, 5.9), Place: w.place()}}
	case kind < 60:
		return Line{Rule: "strong", Params: &Params{MinMag: w.magnitude(5.5, 6.4)}}
	case kind < 75:
		return filter("contains_ci(event.place, %q) && event.mag >= %.1f", w.place(), w.magnitude(3, 5.9))
	case kind < 85:
		return filter("event.mag >= %.1f && event.depth < %d", w.magnitude(5.3, 6.2), 5+w.random.IntN(60))
	case kind < 92:
		return filter("event.tsunami == 1 && event.mag >= %.1f", w.magnitude(4, 6))
	case kind < 96:
		return filter("event.depth > %d && event.mag >= %.1f", 100+5*w.random.IntN(40), w.magnitude(4.5, 6))
	default:
		return filter("event.sig >= %d", 450+w.random.IntN(300))
	}
}

// magnitude draws one with one decimal, evenly from low to high.
func (w *wishes) magnitude(low, high float64) float64 {
	steps := int(math.Round((high - low) * 10))
	return math.Round(low*10+float64(w.random.IntN(steps+1))) / 10
}

func (w *wishes) place() string {
	x := w.random.Float64() * w.weights[len(w.weights)-1]
	for i, sum := range w.weights {
		if x < sum {
			return w.regions[i].name
		}
	}
	return w.regions[0].name
}

func filter(format string, args ...any) Line { return Line{Filter: fmt.Sprintf(format, args...)} }

// condition tells equal conditions from different ones.
func (l Line) condition() string {
	if l.Params == nil {
		return l.Filter
	}
	return fmt.Sprintf("%s %.1f %s", l.Rule, l.Params.MinMag, l.Params.Place)
}
