package demo

import (
	"math"
	"math/rand/v2"
	"slices"

	"fanfare.dev/fanfare/examples/govuk"
)

// criteria are the params of the rule criteria of examples/govuk. An empty list sets no criterion.
type criteria struct {
	DocumentTypes    []string `json:"document_types"`
	Locales          []string `json:"locales"`
	AnyOrganisations []string `json:"any_organisations"`
	AllOrganisations []string `json:"all_organisations"`
}

// pageParams are the params of the rule page.
type pageParams struct {
	BasePath string `json:"base_path"`
}

// govukWishes generates different conditions: any of some organisations, two that publish
// together, document types, a language, one page, words. Topics with many documents are selected
// more often.
func govukWishes(seed uint64) func() Line {
	w := changeWishes{random: newRandom(seed), words: words()}
	organisations, types, pairs := map[string]int{}, map[string]int{}, map[[2]string]int{}
	changes, err := readChanges()
	if err != nil {
		panic("demo: examples/govuk: " + err.Error()) // the file is part of this binary, and tests read it
	}
	for _, c := range changes {
		w.pages = append(w.pages, c.BasePath)
		types[c.DocumentType]++
		for i, o := range c.Links.Organisations {
			organisations[o.ContentID]++
			for _, other := range c.Links.Organisations[i+1:] {
				pairs[[2]string{o.ContentID, other.ContentID}]++
			}
		}
	}
	addSorted(&w.organisations, organisations, func(a, b string) bool { return a < b })
	addSorted(&w.types, types, func(a, b string) bool { return a < b })
	addSorted(&w.pairs, pairs, func(a, b [2]string) bool { return slices.Compare(a[:], b[:]) < 0 })
	return w.next
}

func readChanges() ([]contentChange, error) {
	lines, err := ofFile(govuk.Files(), "content-changes.ndjson")()
	if err != nil {
		return nil, err
	}
	return decodeLines[contentChange](lines)
}

// addSorted adds values with their counts as weights, in a fixed order.
func addSorted[T comparable](w *weighted[T], counts map[T]int, less func(a, b T) bool) {
	var keys []T
	for key := range counts {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b T) int {
		if less(a, b) {
			return -1
		}
		return 1
	})
	for _, key := range keys {
		w.add(key, math.Sqrt(float64(counts[key])))
	}
}

type changeWishes struct {
	random        *rand.Rand
	organisations weighted[string]
	types         weighted[string]
	pairs         weighted[[2]string]
	pages, words  []string
}

func (w *changeWishes) next() Line {
	none := []string{}
	c := criteria{none, none, none, none}
	switch kind := w.random.IntN(100); {
	case kind < 30:
		c.AnyOrganisations = w.some(&w.organisations, 1+w.random.IntN(3)*w.random.IntN(2))
		if kind < 10 {
			c.DocumentTypes = w.some(&w.types, 3+w.random.IntN(8))
		}
	case kind < 42:
		pair := w.pairs.draw(w.random)
		c.AllOrganisations = pair[:]
	case kind < 62:
		c.DocumentTypes = w.some(&w.types, 1+w.random.IntN(3))
	case kind < 67:
		c.Locales = []string{[]string{"ar", "cy", "es", "ur"}[w.random.IntN(4)]}
	case kind < 72:
		c.DocumentTypes, c.Locales = w.some(&w.types, 2), []string{"cy", "en"}
	case kind < 88:
		return Line{Rule: "page", Params: pageParams{w.pages[w.random.IntN(len(w.pages))]}}
	case kind < 96:
		return filter("contains_ci(event.title, %q) || contains_ci(event.description, %[1]q)", w.word())
	default:
		return filter("contains_ci(event.title, %q) && event.document_type != %q", w.word(), w.types.draw(w.random))
	}
	return Line{Rule: "criteria", Params: c}
}

// words returns the words that people search for.
func words() []string {
	return []string{
		"tax", "school", "pension", "driving", "passport", "flood", "visa", "housing", "farm", "energy",
		"Wales", "Scotland", "India", "benefit", "apprentice", "defence", "health", "rail", "consultation", "court",
	}
}

func (w *changeWishes) word() string { return w.words[w.random.IntN(len(w.words))] }

// some draws up to n different values, in alphabetical order, so that equal conditions have equal
// lists.
func (w *changeWishes) some(from *weighted[string], n int) []string {
	var list []string
	for range n {
		list = append(list, from.draw(w.random))
	}
	slices.Sort(list)
	return slices.Compact(list)
}
