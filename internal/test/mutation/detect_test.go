//go:build mutation

package mutation

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// orderOf puts sites in an order that looks random, and that stays when one of them leaves.
func orderOf(seed int, s *Site) uint64 {
	sum := sha256.Sum256(fmt.Append(nil, seed, " ", s.Name()))
	return binary.BigEndian.Uint64(sum[:])
}

// inLanes calls work for 0 to n-1, FANFARE_MUTANT_LANES calls at a time.
func inLanes(t *testing.T, n int, work func(i int)) {
	var lanes sync.WaitGroup
	var next atomic.Int64
	for range max(1, setting(t, "FANFARE_MUTANT_LANES", "1")) {
		lanes.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && t.Context().Err() == nil; i = next.Add(1) - 1 {
				work(int(i))
			}
		})
	}
	lanes.Wait()
}

// TestMutantsAreFound runs the planted mutants, and of all others that are reached and not
// explained a sample: FANFARE_MUTANTS of them (50), or all with "all". FANFARE_MUTANT_SEED
// chooses which, FANFARE_MUTANT_NAMES is an expression that their names have to match, and
// FANFARE_MUTANT_LANES says how many run at a time.
func TestMutantsAreFound(t *testing.T) {
	module, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	names, err := regexp.Compile(os.Getenv("FANFARE_MUTANT_NAMES"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), module, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var chosen []string
	for _, name := range planted {
		if names.MatchString(name) {
			chosen = append(chosen, name)
		}
	}
	inLanes(t, len(chosen), func(i int) {
		s, err := w.Named(chosen[i])
		if err != nil {
			t.Error(err)
			return
		}
		r, err := w.Try(t.Context(), s)
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprintf(os.Stderr, "planted %-45s %t in %5.1f s   %s\n", chosen[i], r.Found, r.Took.Seconds(), s.Code)
		if !r.Found || r.Took > limit {
			t.Errorf("the planted mutant %s (%s) was not found in %s", chosen[i], s.Code, limit)
		}
	})

	reached, err := w.Reached(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	explanations := explained(t)
	var some []Site
	known, unreached := 0, 0
	for _, s := range w.Sites {
		switch {
		case !names.MatchString(s.Name()):
		case !reached[s.Number]:
			unreached++
			if os.Getenv("FANFARE_MUTANTS") == "all" {
				fmt.Fprintf(os.Stderr, "not reached %s: %s\n", s.Name(), s.Code)
			}
		case explanations.of(&s) != "":
			known++
		default:
			some = append(some, s)
		}
	}
	t.Logf("%d sites, %d not reached, %d explained, %d to be found", len(w.Sites), unreached, known, len(some))
	seed := setting(t, "FANFARE_MUTANT_SEED", "1")
	fmt.Fprintf(os.Stderr, "FANFARE_MUTANT_SEED=%d\n", seed)
	slices.SortFunc(some, func(a, b Site) int { return cmp.Compare(orderOf(seed, &a), orderOf(seed, &b)) })
	if os.Getenv("FANFARE_MUTANTS") != "all" {
		some = some[:min(len(some), setting(t, "FANFARE_MUTANTS", "50"))]
	}
	run := &run{t: t, workshop: w, sites: some, begun: time.Now(), tally: map[string][2]int{}}
	inLanes(t, len(some), run.try)
	for _, kind := range []string{"condition", "comparison", "assignment", "call"} {
		t.Logf("%-10s %d of %d found", kind, run.tally[kind][1], run.tally[kind][0])
	}
	slices.Sort(run.survivors)
	if name := os.Getenv("FANFARE_MUTANT_SURVIVORS"); name != "" {
		write(t, name, strings.Join(run.survivors, "\n")+"\n")
	}
}

// A run tries mutants, in several lanes.
type run struct {
	t        *testing.T
	workshop *Workshop
	begun    time.Time

	mu        sync.Mutex
	sites     []Site
	done      int
	survivors []string
	tally     map[string][2]int // by kind: tried, found
}

func (r *run) try(i int) {
	result, err := r.workshop.Try(r.t.Context(), r.sites[i])
	if err != nil {
		r.t.Error(err)
		return
	}
	r.note(&result)
}

func (r *run) note(result *Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &result.Site
	r.done++
	n := r.tally[s.Kind]
	n[0]++
	var said string
	if result.Found {
		n[1]++
		said = fmt.Sprintf("found by %d", result.By)
		if result.Late {
			said = fmt.Sprintf("ENDLESS in %d", result.By)
		}
	} else {
		said = "SURVIVES"
		r.survivors = append(r.survivors, s.Name()+": "+s.Code)
		r.t.Errorf("the mutant %s survives: %s", s.Name(), s.Code)
	}
	r.tally[s.Kind] = n
	left := time.Since(r.begun) / time.Duration(r.done) * time.Duration(len(r.sites)-r.done)
	fmt.Fprintf(os.Stderr, "%d of %d, %d survive, %s left: %s %s in %.1f s: %s\n", r.done, len(r.sites), len(r.survivors), left.Round(time.Second),
		s.Name(), said, result.Took.Seconds(), s.Code)
}
