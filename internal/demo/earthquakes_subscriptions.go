package demo

import (
	"math"
	"math/rand/v2"
)

// quakeParams are the params of the rules of examples/earthquakes.
type quakeParams struct {
	MinMag float64 `json:"min_mag"`
	Place  string  `json:"place,omitempty"` // of the rule near
	*circle
}

// circle is the param of the rule around: a place and a distance in km.
type circle struct {
	Lat float64 `json:"lat"`
	Lon float64 `json:"lon"`
	Km  int     `json:"km"`
}

// earthquakeWishes generates different conditions: near a place by name or by distance, from a
// magnitude, shallow, deep, with a tsunami message, significant.
func earthquakeWishes(seed uint64) func() Line {
	w := quakeWishes{random: newRandom(seed), towns: towns()}
	for _, r := range regions() {
		w.regions.add(r.name, math.Sqrt(float64(r.events))) // people also live in quiet places
	}
	return w.next
}

type quakeWishes struct {
	random  *rand.Rand
	regions weighted[string]
	towns   []town
}

func (w *quakeWishes) next() Line {
	switch kind := w.random.IntN(100); {
	case kind < 15:
		home := w.towns[w.random.IntN(len(w.towns))]
		return Line{Rule: "around", Params: quakeParams{MinMag: w.magnitude(2.5, 4.9), circle: &circle{home.lat, home.lon, 25 * (2 + w.random.IntN(19))}}}
	case kind < 45:
		return Line{Rule: "near", Params: quakeParams{MinMag: w.magnitude(3.6, 5.9), Place: w.place()}}
	case kind < 60:
		return Line{Rule: "strong", Params: quakeParams{MinMag: w.magnitude(5.5, 6.4)}}
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

// magnitude returns a random magnitude with one decimal, evenly distributed from low to high.
func (w *quakeWishes) magnitude(low, high float64) float64 {
	steps := int(math.Round((high - low) * 10))
	return math.Round(low*10+float64(w.random.IntN(steps+1))) / 10
}

func (w *quakeWishes) place() string { return w.regions.draw(w.random) }
