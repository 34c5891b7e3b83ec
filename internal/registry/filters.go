package registry

import (
	"slices"
	"strings"
	"sync"

	"fanfare.dev/fanfare/internal/store/control"
)

// filters interns the distinct texts of filters: each has a number, from 1.
// One goroutine adds; any number read.
type filters struct {
	mu      sync.RWMutex
	numbers map[string]uint32
	texts   []string // by number
}

func newFilters() *filters { return &filters{numbers: map[string]uint32{}, texts: make([]string, 1)} }

// number returns the number of text, 0 if it is not known.
func (f *filters) number(text string) uint32 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.numbers[text]
}

// text returns the text of a number, "" if there is none.
func (f *filters) text(number uint32) string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if int(number) >= len(f.texts) {
		return ""
	}
	return f.texts[number]
}

// is reports whether a number stands for text: those of texts that were
// forgotten stand for nothing.
func (f *filters) is(number uint32, text string) bool { return f.text(number) == text }

// next is the lowest number that was never given.
func (f *filters) next() uint32 { return uint32(len(f.texts)) }

func (f *filters) add(records []control.FilterRecord) {
	if len(records) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range records {
		for int(r.Number) >= len(f.texts) {
			f.texts = append(f.texts, "")
		}
		text := strings.Clone(r.Text) // not to hold on to the line that it came in
		f.texts[r.Number] = text
		if text != "" { // else it was forgotten
			f.numbers[text] = r.Number
		}
	}
}

// naming returns the numbers of the texts that have one of names, which are in
// lower case.
func (f *filters) naming(names []string) []uint32 {
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

// forget empties texts; their numbers stay taken.
func (f *filters) forget(numbers []uint32) {
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
