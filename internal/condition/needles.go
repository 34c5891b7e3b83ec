package condition

import (
	"slices"
	"strings"
)

// needles answers which of many texts occur in another: each is filed under one
// gram of its bytes, the one with the fewest texts, and a look-up goes through
// the grams of the text in which they are sought. All texts are folded.
type needles struct{ tiers [len(gramBytes)]tier }

// gramBytes are how long grams are: a text has the longest that it can have, for few
// texts are met by chance then.
var gramBytes = [...]int{1, 2, 3, 4, 8}

// A tier has the texts whose grams are equally long.
type tier struct {
	filed map[gram][]needle
	sieve []uint64 // a bit for each gram that is filed, by its hash; some for grams that were
}

// A gram is up to eight bytes of a text, the last one highest.
type gram uint64

func gramOf(text string) (g gram) {
	for i := range len(text) {
		g |= gram(text[i]) << (8 * i)
	}
	return g
}

// bit is where g lies in a sieve, whose length is a power of two.
func (g gram) bit(sieve []uint64) (word int, mask uint64) {
	h := uint64(g) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	return int(h>>6) & (len(sieve) - 1), 1 << (h & 63)
}

// A needle is one text and the number under which it is known.
type needle struct {
	text   string
	at     int // where its gram lies in it
	number uint32
}

// tierOf is where a text is, and how long its gram is.
func (n *needles) tierOf(text string) (t *tier, width int) {
	i := len(gramBytes) - 1
	for gramBytes[i] > len(text) {
		i--
	}
	return &n.tiers[i], gramBytes[i]
}

// add files a text that is not empty.
func (n *needles) add(text string, number uint32) {
	t, width := n.tierOf(text)
	if t.filed == nil {
		t.filed = map[gram][]needle{}
	}
	best, at := gramOf(text[:width]), 0
	for i := 1; i+width <= len(text) && len(t.filed[best]) > 0; i++ {
		if g := gramOf(text[i : i+width]); len(t.filed[g]) < len(t.filed[best]) {
			best, at = g, i
		}
	}
	t.filed[best] = append(t.filed[best], needle{text, at, number})
	t.sift(best)
}

// sift keeps the sieve at least eight times as wide as there are grams.
func (t *tier) sift(fresh gram) {
	if 8*len(t.filed) <= 64*len(t.sieve) {
		word, mask := fresh.bit(t.sieve)
		t.sieve[word] |= mask
		return
	}
	t.sieve = make([]uint64, max(64, 2*len(t.sieve)))
	for g := range t.filed {
		word, mask := g.bit(t.sieve)
		t.sieve[word] |= mask
	}
}

// drop takes a text out that was added under number.
func (n *needles) drop(text string, number uint32) {
	t, width := n.tierOf(text)
	for i := 0; i+width <= len(text); i++ {
		g := gramOf(text[i : i+width])
		at := slices.IndexFunc(t.filed[g], func(one needle) bool { return one.number == number })
		if at < 0 {
			continue
		}
		if t.filed[g] = slices.Delete(t.filed[g], at, at+1); len(t.filed[g]) == 0 {
			delete(t.filed, g)
		}
		return
	}
}

// in calls visit with the number of each text that occurs in hay, as often as it
// does.
func (n *needles) in(hay string, visit func(number uint32)) {
	if assertions {
		visit = n.assertFound(hay, visit)
		defer visit(everyEvent) // that is all of them
	}
	for i, width := range gramBytes {
		if t := &n.tiers[i]; len(t.filed) > 0 {
			t.in(hay, width, visit)
		}
	}
}

func (t *tier) in(hay string, width int, visit func(number uint32)) {
	var g gram
	for end := range len(hay) {
		g = g>>8 | gram(hay[end])<<(8*(width-1))
		if end < width-1 {
			continue
		}
		if word, mask := g.bit(t.sieve); t.sieve[word]&mask == 0 {
			continue
		}
		for _, one := range t.filed[g] {
			from := end - width + 1 - one.at
			if from >= 0 && strings.HasPrefix(hay[from:], one.text) {
				visit(one.number)
			}
		}
	}
}
