//go:build mutation

package mutation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// setting reads a number from the environment.
func setting(t *testing.T, name, otherwise string) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), otherwise))
	if err != nil || n < 0 {
		t.Fatalf("%s is not a number", name)
	}
	return n
}

// TestMutantsAreFound runs the planted mutants, and of all others that are reached and not
// explained a sample: FANFARE_MUTANTS of them (50), or all with "all". FANFARE_MUTANT_SEED
// chooses which.
func TestMutantsAreFound(t *testing.T) {
	module, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), module, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range planted {
		s, err := w.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.Try(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(os.Stderr, "planted %-45s %t in %5.1f s   %s\n", name, r.Found, r.Took.Seconds(), s.Code)
		if !r.Found || r.Took > limit {
			t.Errorf("the planted mutant %s (%s) was not found in %s", name, s.Code, limit)
		}
	}

	reached, err := w.Reached(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var some []Site
	explained, unreached := 0, 0
	for _, s := range w.Sites {
		switch {
		case !reached[s.Number]:
			unreached++
			if os.Getenv("FANFARE_MUTANTS") == "all" {
				fmt.Fprintf(os.Stderr, "not reached %s: %s\n", s.Name(), s.Code)
			}
		case equivalenceOf(&s) != "":
			explained++
		default:
			some = append(some, s)
		}
	}
	t.Logf("%d sites, %d not reached, %d explained as equivalent, %d to be found", len(w.Sites), unreached, explained, len(some))
	if text := os.Getenv("FANFARE_MUTANTS"); text != "all" {
		seed := setting(t, "FANFARE_MUTANT_SEED", "1")
		t.Logf("FANFARE_MUTANT_SEED=%d", seed)
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		some = some[:min(len(some), setting(t, "FANFARE_MUTANTS", "50"))]
	}
	begun := time.Now()
	var survivors []string
	tally := map[string][2]int{}
	for i, s := range some {
		r, err := w.Try(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		n := tally[s.Kind]
		n[0]++
		if r.Found {
			n[1]++
		} else {
			survivors = append(survivors, s.Name()+": "+s.Code)
			t.Errorf("the mutant %s survives: %s", s.Name(), s.Code)
		}
		tally[s.Kind] = n
		left := time.Since(begun) / time.Duration(i+1) * time.Duration(len(some)-i-1)
		fmt.Fprintf(os.Stderr, "%d of %d, %d survive, %s left: %s %t by %d in %.1f s\n", i+1, len(some), len(survivors), left.Round(time.Second), s.Name(), r.Found, r.By, r.Took.Seconds())
	}
	for _, kind := range []string{"condition", "comparison", "assignment", "call"} {
		t.Logf("%-10s %d of %d found", kind, tally[kind][1], tally[kind][0])
	}
	slices.Sort(survivors)
	if name := os.Getenv("FANFARE_MUTANT_SURVIVORS"); name != "" {
		write(t, name, strings.Join(survivors, "\n")+"\n")
	}
}
