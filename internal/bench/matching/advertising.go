package matching

import (
	"strconv"

	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/condition"
)

// advertising is B6: as in advertising, every filter has eight predicates over the 40
// fields of an event. Three in five fields are words from sets of five to 2,000, drawn
// by Zipf; the others are numbers.
type advertising struct {
	n     int
	seed  uint64
	facts []fact
}

type fact struct {
	name  string
	words *loadgen.Zipf // nil for a number from 0 to 1,000
}

const (
	campaignFacts      = 40
	campaignPredicates = 8
	factNumbers        = 1000
)

func newAdvertising(n int, seed uint64) *advertising {
	c := &advertising{n: n, seed: seed, facts: make([]fact, campaignFacts)}
	words := []int{5, 20, 50, 100, 200, 500, 1000, 2000}
	for i := range c.facts {
		f := &c.facts[i]
		if i%5 < 3 {
			z := loadgen.NewZipf(words[i%len(words)])
			f.name, f.words = "word_"+strconv.Itoa(i), &z
		} else {
			f.name = "number_" + strconv.Itoa(i)
		}
	}
	return c
}

func (c *advertising) definition() condition.Definition {
	schema := []byte(`{"type":"object","properties":{`)
	for i, f := range c.facts {
		if i > 0 {
			schema = append(schema, ',')
		}
		schema = strconv.AppendQuote(schema, f.name)
		if f.words != nil {
			schema = append(schema, `:{"type":"string"}`...)
		} else {
			schema = append(schema, `:{"type":"number"}`...)
		}
	}
	return condition.Definition{Schema: append(schema, "}}"...)}
}

func (c *advertising) condition(i int) (filter, rule string, params []byte) {
	var order [campaignFacts]int
	for k := range order {
		order[k] = k
	}
	h := loadgen.Mix(c.seed ^ uint64(i))
	var text []byte
	for k := range campaignPredicates {
		h = loadgen.Mix(h)
		at := k + int(h%uint64(campaignFacts-k))
		order[k], order[at] = order[at], order[k]
		if k > 0 {
			text = append(text, " && "...)
		}
		text = c.facts[order[k]].appendPredicate(text, loadgen.Mix(h))
	}
	return string(text), "", nil
}

// appendPredicate appends a predicate for a word, or for the upper or lower part of the
// numbers.
func (f fact) appendPredicate(dst []byte, h uint64) []byte {
	dst = append(append(dst, "event."...), f.name...)
	if f.words != nil {
		dst = append(dst, " == '"...)
		return append(f.appendWord(dst, h), '\'')
	}
	if h&1 == 0 {
		dst = append(dst, " >= "...)
	} else {
		dst = append(dst, " < "...)
	}
	return strconv.AppendUint(dst, loadgen.Mix(h)%factNumbers, 10)
}

func (f fact) appendWord(dst []byte, h uint64) []byte {
	return strconv.AppendInt(append(dst, 'w'), int64(f.words.Rank(loadgen.Unit(h))), 10)
}

func (c *advertising) event(i int) []byte {
	data := []byte{'{'}
	for k, f := range c.facts {
		if k > 0 {
			data = append(data, ',')
		}
		data = append(strconv.AppendQuote(data, f.name), ':')
		h := loadgen.Mix(c.seed + 1<<40 + uint64(campaignFacts*i+k))
		if f.words != nil {
			data = append(f.appendWord(append(data, '"'), h), '"')
		} else {
			data = strconv.AppendFloat(data, factNumbers*loadgen.Unit(h), 'f', 2, 64)
		}
	}
	return append(data, '}')
}

func (c *advertising) bare(int) limitMatch { return lookUp(c.n) }
