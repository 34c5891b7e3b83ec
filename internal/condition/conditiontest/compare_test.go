package conditiontest

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// number reads a number from the environment.
func number(t testing.TB, name, otherwise string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(cmp.Or(os.Getenv(name), otherwise), 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("%s is not a positive number", name)
	}
	return n
}

// TestTheIndexAgreesWithTheEvaluator compares FANFARE_COMPARE_PAIRS pairs of a condition and
// an event, from the seed FANFARE_COMPARE_SEED on. It tells every ten seconds how far it is
// where there are many.
func TestTheIndexAgreesWithTheEvaluator(t *testing.T) {
	pairs, seed := number(t, "FANFARE_COMPARE_PAIRS", "200000"), number(t, "FANFARE_COMPARE_SEED", "300")
	size := Size{Subscriptions: 500, Events: 16, Batches: 2}
	if pairs > 10_000_000 {
		size = Size{Subscriptions: 2500, Events: 4096, Batches: 4}
	}
	var mu sync.Mutex
	var all Counts
	begun, told, next := time.Now(), time.Now(), uint64(seed)
	var lanes sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), int(number(t, "FANFARE_COMPARE_LANES", "64"))) {
		lanes.Go(func() {
			for {
				mu.Lock()
				own := next
				over := all.Pairs >= pairs || t.Failed()
				next++
				mu.Unlock()
				if over {
					return
				}
				w, err := NewWorld(Seeded(own), Synthetic(), size)
				if err == nil {
					err = w.Run()
				}
				mu.Lock()
				if err != nil {
					t.Errorf("seed %d: %v", own, err)
				}
				if w != nil {
					all.Add(&w.Counts)
				}
				if time.Since(told) > 10*time.Second {
					told = time.Now()
					rate := float64(all.Pairs) / time.Since(begun).Seconds()
					fmt.Fprintf(os.Stderr, "%s, seeds %d to %d, %.1f million pairs/s, %s left\n", all.String(), seed, own, rate/1e6,
						time.Duration(float64(pairs-all.Pairs)/rate*float64(time.Second)).Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	lanes.Wait()
	t.Logf("seeds %d to %d: %s, in %s", seed, next-1, &all, time.Since(begun).Round(time.Millisecond))
	if t.Failed() {
		return
	}
	if len(all.Shapes) < 200 {
		t.Errorf("%d distinct shapes, want at least 200", len(all.Shapes))
	}
	if share := float64(all.True) / float64(all.Pairs); share < 0.02 || share > 0.5 {
		t.Errorf("%.4f of the pairs are true: too few or too many to tell", share)
	}
	if all.Undecided*20 > all.Pairs {
		t.Errorf("%d of %d pairs are undecided", all.Undecided, all.Pairs)
	}
}

// FuzzTheIndexAgreesWithTheEvaluator has a fuzzer make the choices of the generator.
func FuzzTheIndexAgreesWithTheEvaluator(f *testing.F) {
	f.Add([]byte{})
	for seed := range 20 {
		data := make([]byte, 3000)
		r := Seeded(uint64(seed))
		for i := range data {
			data[i] = byte(r.Intn(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := NewWorld(FromBytes(data), Synthetic(), Size{Subscriptions: 12, Events: 16, Batches: 2})
		if err == nil {
			err = w.Run()
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// TestAGeneratorDrawsEverythingOfTheGrammar makes sure that no production is forgotten.
func TestAGeneratorDrawsEverythingOfTheGrammar(t *testing.T) {
	g := NewGenerator(Seeded(1), Synthetic())
	g.keyed, g.bare = true, true
	var all strings.Builder
	for range 3000 {
		all.WriteString(g.Filter())
		when, _ := g.Rule()
		all.WriteString(when)
	}
	for _, part := range []string{" && (", " || ", "!", "!!", " ? ", "has(", ".exists(", ".all(", ".exists_one(", ".filter(", ".map(", " in [", "geo.within(", "crosses_above(", "crosses(",
		"timestamp(", "duration(", "getHours('Europe/Berlin')", "'+02:00'", "ce.source", "event['", "event.`", "sub.l", "sub.n", "double(", "int(", "dyn(", "string(", "size(", " % ", " - ", `\U0`, "'''", "r'", "// a comment",
		"== null", "matches(", "contains_ci(", "starts_with_ci(", ".startsWith(", "event.event", "9223372036854775807", "0x10"} {
		if part != "event.event" && !strings.Contains(all.String(), part) {
			t.Errorf("nothing has %q in it", part)
		}
	}
}
