//go:build mutation

package mutation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A detector is a run of a test binary that has to fail for a mutant.
type detector struct {
	pkg  string // of this module
	args []string
	env  []string
}

// detectors are tried in this order: what is quick and finds most comes first.
var detectors = []detector{
	{"internal/condition/conditiontest", []string{"-test.run=^TestTheIndexAgreesWithTheEvaluator$"}, []string{"FANFARE_COMPARE_PAIRS=30000", "FANFARE_COMPARE_SEED=300", "FANFARE_COMPARE_LANES=1"}},
	{"internal/condition/lang", []string{"-test.failfast", "-test.run=^Test"}, nil},
	{"internal/condition/expr", []string{"-test.failfast", "-test.run=^Test"}, nil},
	{"internal/condition/ngram", []string{"-test.failfast", "-test.run=^Test"}, nil},
	{"internal/condition", []string{"-test.failfast", "-rapid.nofailfile", "-rapid.seed=1", "-test.run=^Test", "-test.skip=^TestHits|TestRowsFindTheirCrossings|TestEveryGuard|TestATopicLimitsItsShapes|TestConjunctionsAreFound"}, []string{"FANFARE_TEST_PAIRS=5000"}},
	{"internal/condition", []string{"-test.failfast", "-rapid.nofailfile", "-rapid.seed=1", "-test.run=^TestHits|TestRowsFindTheirCrossings|TestEveryGuard|TestConjunctionsAreFound"}, []string{"FANFARE_TEST_PAIRS=60000", "FANFARE_TEST_FIRST=1"}},
	{"internal/condition/conditiontest", []string{"-test.run=^TestTheIndexAgreesWithTheEvaluator$"}, []string{"FANFARE_COMPARE_PAIRS=300000", "FANFARE_COMPARE_SEED=4000", "FANFARE_COMPARE_LANES=1"}},
}

// A Workshop has the compiled mutants.
type Workshop struct {
	Sites []Site

	dir      string
	binaries map[string]string // by package
	module   string            // its folder
}

// Open instruments the packages of the index in the module in a folder and compiles the detectors into
// dir. It takes about half a minute.
func Open(ctx context.Context, module, dir string) (*Workshop, error) {
	overlay, sites, err := Instrument(folders(module), skipped)
	if err != nil {
		return nil, err
	}
	w := &Workshop{Sites: sites, dir: dir, binaries: map[string]string{}, module: module}
	replace := map[string]string{}
	for path, source := range overlay {
		changed := filepath.Join(dir, filepath.Base(filepath.Dir(path))+"_"+filepath.Base(path))
		if err := os.WriteFile(changed, source, 0o600); err != nil {
			return nil, err
		}
		replace[path] = changed
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		return nil, err
	}
	for _, d := range detectors {
		if w.binaries[d.pkg] != "" {
			continue
		}
		binary := filepath.Join(dir, filepath.Base(d.pkg)+".test")
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, "./"+d.pkg)
		cmd.Dir = module
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("the changed sources do not compile: %w\n%s", err, out)
		}
		w.binaries[d.pkg] = binary
	}
	return w, nil
}

// run runs a detector with some environment. It is true where it failed, panicked or took
// longer than a limit, which late says.
func (w *Workshop) run(ctx context.Context, d *detector, limit time.Duration, env ...string) (failed, late bool, out string) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(bounded, w.binaries[d.pkg], append([]string{"-test.count=1", "-test.timeout=0"}, d.args...)...)
	cmd.Dir = filepath.Join(w.module, d.pkg)
	cmd.Env = append(append(os.Environ(), "GOMEMLIMIT=1GiB"), append(d.env, env...)...)
	text, err := cmd.CombinedOutput()
	return err != nil, bounded.Err() != nil, string(text)
}

// Reached returns the sites that the detectors reach, by number. It fails where a detector
// fails without a mutant.
func (w *Workshop) Reached(ctx context.Context) (map[int]bool, error) {
	file := filepath.Join(w.dir, "coverage.txt")
	for i := range detectors {
		if failed, _, out := w.run(ctx, &detectors[i], 5*time.Minute, "FANFARE_MUTANT_COVERAGE="+file); failed {
			return nil, fmt.Errorf("the detector %s %s fails without a mutant:\n%s", detectors[i].pkg, strings.Join(detectors[i].args, " "), out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reached := map[int]bool{}
	for _, line := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		reached[n] = true
	}
	return reached, nil
}

// limit is how long a detector may take for one mutant, and all of them for a planted one.
const limit = time.Minute

// A Result is what became of a mutant.
type Result struct {
	Site  Site
	Found bool
	Late  bool // found because the detector took longer than it may
	Took  time.Duration
	By    int // number of the detector that found it, from 1
}

// Try runs the detectors for one mutant until one of them finds it.
func (w *Workshop) Try(ctx context.Context, s Site) (Result, error) {
	begun := time.Now()
	for i := range detectors {
		failed, late, _ := w.run(ctx, &detectors[i], limit, "FANFARE_MUTANT="+strconv.Itoa(s.Number))
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		if failed {
			return Result{Site: s, Found: true, Late: late, Took: time.Since(begun), By: i + 1}, nil
		}
	}
	return Result{Site: s, Took: time.Since(begun)}, nil
}

// Named returns the site with a name.
func (w *Workshop) Named(name string) (Site, error) {
	for _, s := range w.Sites {
		if s.Name() == name {
			return s, nil
		}
	}
	return Site{}, errors.New("no site is named " + name + ": where did it go?")
}
