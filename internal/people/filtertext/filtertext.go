// Package filtertext numbers the distinct texts of filters. Subscriptions store the number, so that
// a text that many subscriptions share is in memory once. The registry keeps one Table, loaded from
// the database at start.
package filtertext

import (
	"slices"
	"strings"
	"sync"

	"fanfare.dev/fanfare/internal/store/control"
)

// A Table has the distinct texts of filters by number, from 1. One goroutine changes it. Any number
// may read at the same time.
type Dictionary struct {
	mu      sync.RWMutex
	numbers map[string]uint32
	texts   []string // by number
}

// New returns an empty Table.
func New() *Dictionary { return &Dictionary{numbers: map[string]uint32{}, texts: make([]string, 1)} }

// Number returns the number of a text, 0 if it has none.
func (f *Dictionary) Number(text string) uint32 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.numbers[text]
}

// Text returns the text of a number, "" if there is none.
func (f *Dictionary) Text(number uint32) string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if int(number) >= len(f.texts) {
		return ""
	}
	return f.texts[number]
}

// Is reports whether a text has the number. The numbers of erased texts have no text.
func (f *Dictionary) Is(number uint32, text string) bool { return f.Text(number) == text }

// Next returns the lowest number that was never used.
func (f *Dictionary) Next() uint32 { return uint32(len(f.texts)) }

// Add adds texts with their numbers.
func (f *Dictionary) Add(records []control.FilterRecord) {
	if len(records) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range records {
		for int(r.Number) >= len(f.texts) {
			f.texts = append(f.texts, "")
		}
		text := strings.Clone(r.Text) // without the line that it was part of
		f.texts[r.Number] = text
		if text != "" { // else it was erased
			f.numbers[text] = r.Number
		}
	}
}

// Containing returns the numbers of the texts that contain one of the names, given in lower case.
func (f *Dictionary) Containing(names []string) []uint32 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var found []uint32
	for number, text := range f.texts {
		text = strings.ToLower(text)
		if slices.ContainsFunc(names, func(n string) bool { return strings.Contains(text, n) }) {
			found = append(found, uint32(number))
		}
	}
	return found
}

// Erase removes texts. Their numbers are not reused.
func (f *Dictionary) Erase(numbers []uint32) {
	if len(numbers) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range numbers {
		delete(f.numbers, f.texts[n])
		f.texts[n] = ""
	}
}
