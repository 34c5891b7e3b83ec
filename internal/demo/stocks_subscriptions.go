package demo

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// triggerParams are the params of the trigger rules of examples/stocks.
type triggerParams struct {
	Symbol  string  `json:"symbol"`
	Trigger float64 `json:"trigger"`
}

// moveParams are the params of the rule move.
type moveParams struct {
	Symbol  string  `json:"symbol"`
	Cost    float64 `json:"cost"`
	Percent float64 `json:"percent"`
}

// stockWishes generates conditions for rare prices of a share: near its highest or lowest price,
// or inside a range.
func stockWishes(seed uint64) func() Line {
	all, err := readPrices()
	if err != nil {
		panic("demo: examples/stocks: " + err.Error()) // the file is part of this binary, and tests read it
	}
	w := priceWishes{random: newRandom(seed), sorted: map[string][]float64{}}
	for _, p := range all {
		w.sorted[p.Symbol] = append(w.sorted[p.Symbol], p.Price)
	}
	w.symbols = slices.Sorted(maps.Keys(w.sorted))
	for _, prices := range w.sorted {
		slices.Sort(prices)
	}
	return w.next
}

type priceWishes struct {
	random  *rand.Rand
	symbols []string
	sorted  map[string][]float64 // the sorted prices of each symbol
}

// seldom is the maximum number of prices that match a condition.
const seldom = 5

func (w *priceWishes) next() Line {
	symbol := w.symbols[w.random.IntN(len(w.symbols))]
	prices := w.sorted[symbol]
	k := 1 + w.random.IntN(seldom)
	switch kind := w.random.IntN(100); {
	case kind < 45:
		return Line{Rule: w.oneOf("above", "limit"), Params: triggerParams{symbol, w.between(prices[len(prices)-k-1], prices[len(prices)-k])}}
	case kind < 80:
		return Line{Rule: w.oneOf("below", "stop"), Params: triggerParams{symbol, w.between(prices[k-1], prices[k])}}
	case kind < 85:
		cost := prices[len(prices)/2]
		return Line{Rule: "move", Params: moveParams{symbol, cost, math.Round((prices[len(prices)-k]/cost - 1) * 100)}}
	default:
		from := w.random.IntN(len(prices) - k)
		return filter("event.symbol == %q && event.price >= %.2f && event.price < %.2f", symbol, prices[from], prices[from+k])
	}
}

func (w *priceWishes) oneOf(rules ...string) string { return rules[w.random.IntN(len(rules))] }

// between returns a random trigger in cents.
func (w *priceWishes) between(low, high float64) float64 {
	return math.Round((low+w.random.Float64()*(high-low))*100) / 100
}
