// Package ngram finds which of many short texts occur in another text.
//
// Each text is filed under one n-gram of its bytes, the one that the fewest other texts are
// filed under. A search goes through the n-grams of the text that is searched. Callers fold the
// texts. The index (internal/condition) keeps the params of contains_ci and similar conditions in it.
package ngram

import (
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/condition/assert"
)

// assertFound returns a visit that looks at each text: it is in hay. With everyEvent, which is
// the number of none, it asks whether those were all.
func (n *Index) assertFound(hay string, visit func(number uint32)) func(number uint32) {
	const most = 4096
	want := map[uint32]bool{} // true: it was found
	filed := 0
	for i := range n.tables {
		for _, list := range n.tables[i].entries {
			for _, one := range list {
				if filed++; filed > most {
					return func(number uint32) {
						if number != 0 {
							visit(number)
						}
					}
				}
				if strings.Contains(hay, one.text) {
					want[one.number] = false
				}
			}
		}
	}
	return func(number uint32) {
		if number == 0 {
			for number, found := range want {
				assert.That(found, "text %d is in %q and was not found", number, hay)
			}
			return
		}
		_, known := want[number]
		assert.That(known, "text %d was found in %q, where it is not", number, hay)
		want[number] = true
		visit(number)
	}
}

// Index answers which of many texts occur in another: each is filed under one
// gram of its bytes, the one with the fewest texts, and a look-up goes through
// the grams of the text in which they are sought. All texts are folded.
type Index struct{ tables [len(gramBytes)]table }

// gramBytes are how long grams are: a text has the longest that it can have, for few
// texts are met by chance then.
var gramBytes = [...]int{1, 2, 3, 4, 8}

// A tier has the texts whose grams are equally long.
type table struct {
	entries map[gram][]entry
	bitmap  []uint64 // a bit for each gram that is filed, by its hash; some for grams that were
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
type entry struct {
	text       string
	gramOffset int // where its gram lies in it
	number     uint32
}

// tableOf is where a text is, and how long its gram is.
func (n *Index) tableOf(text string) (t *table, width int) {
	i := len(gramBytes) - 1
	for gramBytes[i] > len(text) {
		i--
	}
	return &n.tables[i], gramBytes[i]
}

// Add files a text that is not empty.
func (n *Index) Add(text string, number uint32) {
	t, width := n.tableOf(text)
	if t.entries == nil {
		t.entries = map[gram][]entry{}
	}
	best, at := gramOf(text[:width]), 0
	for i := 1; i+width <= len(text) && len(t.entries[best]) > 0; i++ {
		if g := gramOf(text[i : i+width]); len(t.entries[g]) < len(t.entries[best]) {
			best, at = g, i
		}
	}
	t.entries[best] = append(t.entries[best], entry{text, at, number})
	t.addToBitmap(best)
}

// addToBitmap keeps the sieve at least eight times as wide as there are grams.
func (t *table) addToBitmap(fresh gram) {
	if 8*len(t.entries) <= 64*len(t.bitmap) {
		word, mask := fresh.bit(t.bitmap)
		t.bitmap[word] |= mask
		return
	}
	t.bitmap = make([]uint64, max(64, 2*len(t.bitmap)))
	for g := range t.entries {
		word, mask := g.bit(t.bitmap)
		t.bitmap[word] |= mask
	}
}

// Remove takes a text out that was added under number.
func (n *Index) Remove(text string, number uint32) {
	t, width := n.tableOf(text)
	for i := 0; i+width <= len(text); i++ {
		g := gramOf(text[i : i+width])
		at := slices.IndexFunc(t.entries[g], func(one entry) bool { return one.number == number })
		if at < 0 {
			continue
		}
		if t.entries[g] = slices.Delete(t.entries[g], at, at+1); len(t.entries[g]) == 0 {
			delete(t.entries, g)
		}
		return
	}
}

// Find calls visit with the number of each text that occurs in hay, as often as it
// does.
func (n *Index) Find(hay string, visit func(number uint32)) {
	if assert.Enabled {
		visit = n.assertFound(hay, visit)
		defer visit(0) // that is all of them
	}
	for i, width := range gramBytes {
		if t := &n.tables[i]; len(t.entries) > 0 {
			t.find(hay, width, visit)
		}
	}
}

func (t *table) find(hay string, width int, visit func(number uint32)) {
	var g gram
	for end := range len(hay) {
		g = g>>8 | gram(hay[end])<<(8*(width-1))
		if end < width-1 {
			continue
		}
		if word, mask := g.bit(t.bitmap); t.bitmap[word]&mask == 0 {
			continue
		}
		for _, one := range t.entries[g] {
			from := end - width + 1 - one.gramOffset
			if from >= 0 && strings.HasPrefix(hay[from:], one.text) {
				visit(one.number)
			}
		}
	}
}
