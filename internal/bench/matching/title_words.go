package matching

import (
	"fmt"

	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/condition"
)

// titleSchema is the schema of events with a title.
const titleSchema = `{"type":"object","properties":{"title":{"type":"string"}}}`

// sharedFilter is B3: all subscriptions have NotifyBC's filter, and every event matches
// it.
type sharedFilter struct{ n int }

func (sharedFilter) definition() condition.Definition {
	return condition.Definition{Schema: []byte(titleSchema)}
}

func (sharedFilter) condition(int) (filter, rule string, params []byte) {
	return loadgen.NotifyFilter, "", nil
}

func (sharedFilter) event(i int) []byte {
	return fmt.Appendf(nil, `{"title":"Ferry %d to Victoria is late"}`, i)
}

func (s sharedFilter) bare(int) limitMatch {
	all := make([]uint32, s.n)
	for i := range all {
		all[i] = uint32(placeOf(i))
	}
	return limitMatch{exact: true, answer: func(_ int, _ []byte, dst []uint32) []uint32 { return append(dst, all...) }}
}

// titleWordFilters is B4: subscriptions look for 10,000 different words, chosen by Zipf,
// in titles. A title of twelve words has one of them.
type titleWordFilters struct {
	n     int
	seed  uint64
	words loadgen.Zipf
}

const (
	titleWords = 12
	idleWords  = 1 << 16 // words that no subscription looks for
)

func newTitleWordFilters(n int, seed uint64) *titleWordFilters {
	return &titleWordFilters{n, seed, loadgen.NewZipf(min(10_000, max(1, n/10)))}
}

func (*titleWordFilters) definition() condition.Definition {
	return condition.Definition{Schema: []byte(titleSchema)}
}

func (h *titleWordFilters) sought(i int) int {
	return h.words.Rank(loadgen.Unit(loadgen.Mix(h.seed ^ uint64(i))))
}

func (h *titleWordFilters) condition(i int) (filter, rule string, params []byte) {
	return "contains_ci(title, '" + string(loadgen.AppendWord(nil, h.sought(i))) + "')", "", nil
}

// told returns the word of event i that subscriptions look for.
func (h *titleWordFilters) told(i int) int {
	return int(loadgen.Mix(h.seed+1<<40+uint64(i)) % uint64(len(h.words.UpTo)))
}

func (h *titleWordFilters) event(i int) []byte {
	at := int(loadgen.Mix(h.seed+1<<41+uint64(i)) % titleWords)
	data := []byte(`{"title":"`)
	for k := range titleWords {
		if k > 0 {
			data = append(data, ' ')
		}
		from, word := len(data), h.told(i)
		if k != at {
			word = len(h.words.UpTo) + int(loadgen.Mix(h.seed+1<<42+uint64(i*titleWords+k))%idleWords)
		}
		data = loadgen.AppendWord(data, word)
		data[from] -= 'a' - 'A'
	}
	return append(data, `"}`...)
}

// bare folds the title and looks up each sequence of four characters in a table of 64
// KiB, as the cheapest index of substrings must. The subscriptions of a word are a
// slice.
func (h *titleWordFilters) bare(events int) limitMatch {
	of := make([][]uint32, len(h.words.UpTo))
	for i := range h.n {
		of[h.sought(i)] = append(of[h.sought(i)], uint32(placeOf(i)))
	}
	var grams [1 << 16]byte
	for word := range of {
		text := loadgen.AppendWord(nil, word)
		grams[gramHash(uint32(text[0])<<24|uint32(text[1])<<16|uint32(text[2])<<8|uint32(text[3]))] = 1
	}
	typed := make([]int, events)
	for i := range typed {
		typed[i] = h.told(i)
	}
	return limitMatch{exact: true, answer: func(i int, data []byte, dst []uint32) []uint32 {
		var gram, found uint32
		for _, c := range data {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			gram = gram<<8 | uint32(c)
			found += uint32(grams[gramHash(gram)])
		}
		if found == 0 { // never: the title has the word
			return dst
		}
		return append(dst, of[typed[i]]...)
	}}
}

func gramHash(gram uint32) uint16 { return uint16(gram * 0x9e3779b1 >> 16) }
