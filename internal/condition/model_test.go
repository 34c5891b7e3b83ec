package condition

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// A scale is the size of a world.
type scale struct {
	locals  uint32 // places of a partition
	entries int    // that are added at once, at most
	of      []entryKind
	events  int // after each change
}

// entryKind is the kind of condition of a subscription.
type entryKind uint8

const (
	everyEventEntry entryKind = iota
	filterEntry
	likeEntry      // a filter that differs from another in its literals
	predicateEntry // a filter of predicates on few fields
	alikeEntry     // a filter that has predicates in common with many
	ruleEntry
)

// scales have few conditions of all kinds, or many of one: a judge compiles a rule once.
// FANFARE_TEST_WORLDS selects them by name.
func scales() map[string]scale {
	mixed := []entryKind{everyEventEntry, filterEntry, likeEntry, ruleEntry, ruleEntry, ruleEntry}
	rows := append(slices.Repeat([]entryKind{ruleEntry}, 60), filterEntry, likeEntry)
	return map[string]scale{
		"few":        {20, 12, mixed, 25},
		"some":       {60, 40, mixed, 35},
		"rows":       {700, 600, rows, 10},
		"very many":  {4000, 3000, rows, 2},
		"predicates": {200, 300, []entryKind{predicateEntry, likeEntry}, 25},
		"alike":      {100, 300, []entryKind{alikeEntry}, 25},
	}
}

func drawScale(t *rapid.T) scale {
	names := append(slices.Repeat([]string{"few", "some", "rows"}, 4), "very many", "predicates", "alike")
	if asked := os.Getenv("FANFARE_TEST_WORLDS"); asked != "" {
		names = strings.Split(asked, ",")
	}
	name := pick(t, names)
	s, known := scales()[name]
	if !known {
		t.Fatalf("there is no world %q", name)
	}
	return s
}

// drawPlace draws an id. In a partition with many ids, they are on two pages.
func (s scale) drawPlace(t *rapid.T) fanfare.RowID {
	local := rapid.Uint32Range(0, s.locals-1).Draw(t, "local")
	if local > s.locals/2 {
		local += rowsPerPage - s.locals*3/4
	}
	return fanfare.NewRowID(rapid.IntRange(0, 3).Draw(t, "partition"), local)
}

func (w *world) drawEntry(t *rapid.T, s scale) Entry {
	place := s.drawPlace(t)
	e := Entry{Place: place, Subscriber: place / 2, Channel: uint16(place % 7), Slot: pick(t, []uint16{0, 0, 0, 0, 1, 40_000})}
	switch kind := pick(t, s.of); kind {
	case everyEventEntry:
	case filterEntry, predicateEntry, alikeEntry:
		draw := map[entryKind]func(*rapid.T, bool) string{filterEntry: drawFilter, predicateEntry: drawPredicates, alikeEntry: drawAlike}[kind]
		good := func(text string) error { return w.x.CheckFilter(w.key, text) }
		e.Filter = drawAccepted(t, good, "event == null", func() string { return draw(t, w.bare()) })
		w.filterTexts = append(w.filterTexts, e.Filter)
	case likeEntry:
		e.Filter = "event != null"
		if len(w.filterTexts) > 0 {
			if like := redraw(t, pick(t, w.filterTexts)); w.x.CheckFilter(w.key, like) == nil {
				e.Filter = like
			}
		}
	case ruleEntry:
		e.Rule, e.Params = pick(t, w.def.Rules).Name, drawParams(t)
	}
	return e
}

// redefine changes a rule, the order of all rules, or the schema. If a filter conflicts, the
// change is refused and nothing changes.
func (w *world) redefine(t *rapid.T) {
	def := w.def
	if oneIn(t, 3) {
		def = drawTopic(t)
		def.Rules = w.def.Rules
	} else {
		def.Rules = slices.Clone(def.Rules)
		slices.Reverse(def.Rules)
		i := rapid.IntRange(0, len(def.Rules)-1).Draw(t, "rule")
		def.Rules[i] = w.drawRule(t, def, def.Rules[i].Name)
	}
	err := w.define(def)
	if e, ok := errors.AsType[*fanfare.Error](err); err != nil && (!ok || e.Code != fanfare.Conflict && e.Code != fanfare.Invalid) {
		t.Fatalf("redefine %+v: %v", def, err)
	}
}

// live applies random changes to a world, and compares the complete hits of several events with
// those of the judges after each change.
func live(t *rapid.T) (pairs int) {
	w, s := newWorld(t), drawScale(t)
	t.Repeat(map[string]func(*rapid.T){
		"add": func(t *rapid.T) {
			entries := make([]Entry, rapid.IntRange(1, s.entries).Draw(t, "entries"))
			for i := range entries {
				entries[i] = w.drawEntry(t, s)
			}
			w.add(t, entries)
		},
		"remove": func(t *rapid.T) {
			for range s.entries / 3 {
				w.remove(s.drawPlace(t))
			}
		},
		"remove all of a kind": func(t *rapid.T) {
			rule := pick(t, append(slices.Clone(w.def.Rules), Rule{})).Name
			for place, e := range w.entries {
				if e.Rule == rule {
					w.remove(place)
				}
			}
		},
		"begin anew": func(t *rapid.T) {
			if rapid.Bool().Draw(t, "as it was") {
				w.restart(t)
			} else {
				w.redefine(t)
			}
		},
		"": func(t *rapid.T) {
			for range s.events {
				w.check(t, drawEvent(t))
			}
			if w.x.Len(w.key) != len(w.entries) {
				t.Fatalf("Len is %d, want %d", w.x.Len(w.key), len(w.entries))
			}
		},
	})
	return w.pairs()
}

// pairsWanted is the number of pairs that the oracle compares. CI asks for more.
func pairsWanted(t *testing.T) int {
	text := os.Getenv("FANFARE_TEST_PAIRS")
	if text == "" {
		return 1_000_000
	}
	pairs, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("FANFARE_TEST_PAIRS: %v", err)
	}
	return pairs
}

// tellFirst prints the first difference before rapid looks for a smaller example, which takes
// minutes if the example is large. With FANFARE_TEST_FIRST, the process ends there.
func tellFirst(why any) {
	fmt.Fprintf(os.Stderr, "--- FAIL: TestHitsAreThoseOfNaiveEvaluation, the first difference: %v\n", why)
	if os.Getenv("FANFARE_TEST_FIRST") != "" {
		os.Exit(1)
	}
}

// TestHitsAreThoseOfNaiveEvaluation compares an index with cel-go for every condition and event,
// through random schemas, rules, additions, replacements, removals, redefinitions and restarts,
// until it has compared the wanted number of pairs.
func TestHitsAreThoseOfNaiveEvaluation(t *testing.T) {
	const lanes = 2
	wanted, pairs := pairsWanted(t), make([]int, lanes)
	var first sync.Once
	t.Run("lanes", func(t *testing.T) {
		for lane := range lanes {
			t.Run(strconv.Itoa(lane), func(t *testing.T) {
				t.Parallel()
				for pairs[lane] < wanted/lanes && !t.Failed() {
					rapid.Check(t, func(t *rapid.T) {
						defer func() {
							why := recover()
							if _, broken := why.(runtime.Error); broken || t.Failed() {
								first.Do(func() { tellFirst(why) })
							}
							if why != nil {
								panic(why)
							}
						}()
						if pairs[lane] < wanted/lanes { // else what is left of the hundred checks is done
							pairs[lane] += live(t)
						}
					})
				}
			})
		}
	})
	total := 0
	for _, n := range pairs {
		total += n
	}
	t.Attr("pairs", strconv.Itoa(total))
}
