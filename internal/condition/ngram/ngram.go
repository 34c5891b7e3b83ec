// Package ngram finds which of many short texts occur in another text.
//
// It stores each text under one n-gram of its bytes, the one with the fewest other texts. A search
// looks up each n-gram of the searched text. Callers fold the texts. The index (internal/condition)
// stores the params of contains_ci and similar conditions here.
package ngram

import (
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/condition/assert"
)

// assertFound returns a visit that checks each number: its text is in hay. A call with 0 checks
// that all were visited.
func (n *Index) assertFound(hay string, visit func(number uint32)) func(number uint32) {
	const most = 4096
	want := map[uint32]bool{} // true once it is visited
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
				assert.True(found, "text %d is in %q, but was not found", number, hay)
			}
			return
		}
		_, known := want[number]
		assert.True(known, "text %d was found in %q, but is not in it", number, hay)
		want[number] = true
		visit(number)
	}
}

// Index finds which of its texts occur in another text.
type Index struct{ tables [len(gramBytes)]table }

// gramBytes are the lengths of n-grams. A text has the longest that fits, because long n-grams
// match few other texts.
var gramBytes = [...]int{1, 2, 3, 4, 8}

// A table holds the texts with n-grams of one length.
type table struct {
	entries map[gram][]entry
	bitmap  []uint64 // has the bit of each n-gram in entries, and may have bits of removed ones
}

// A gram is up to eight bytes of a text, with the last byte in the highest place.
type gram uint64

func gramOf(text string) (g gram) {
	for i := range len(text) {
		g |= gram(text[i]) << (8 * i)
	}
	return g
}

// bit returns the position of g in a bitmap, whose length is a power of two.
func (g gram) bit(sieve []uint64) (word int, mask uint64) {
	h := uint64(g) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	return int(h>>6) & (len(sieve) - 1), 1 << (h & 63)
}

// An entry is a text and its number.
type entry struct {
	text       string
	gramOffset int // of its n-gram in text
	number     uint32
}

// tableOf returns the table for a text and the length of its n-gram.
func (n *Index) tableOf(text string) (t *table, width int) {
	i := len(gramBytes) - 1
	for gramBytes[i] > len(text) {
		i--
	}
	return &n.tables[i], gramBytes[i]
}

// Add stores a text, which must not be empty, under a number.
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

// addToBitmap adds an n-gram and ensures that there are at least eight bits for each n-gram.
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

// Remove removes a text that was added with number.
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

// Find calls visit with the number of each text that occurs in hay, once for each occurrence.
func (n *Index) Find(hay string, visit func(number uint32)) {
	if assert.Enabled {
		visit = n.assertFound(hay, visit)
		defer visit(0) // all were visited
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
