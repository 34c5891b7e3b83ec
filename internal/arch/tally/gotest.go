package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// An event is a line of `go test -json`, see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output and build-fail
	Test       string
	Output     string
	Key, Value string // of attr: what a test says of itself by T.Attr
	Elapsed    float64
}

// outsideTests stands for what went wrong in a package and in none of its tests.
const outsideTests = "(package)"

// test keeps the outcomes of a run, on a place where that is named. With the flag
// -again first, failed tests get another try.
func test(file, where string, args []string) error {
	tryAgain := args[0] == "-again"
	if tryAgain {
		args = args[1:]
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...) //nolint:gosec,noctx // as in step
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	outcomes, digestErr := digest(stdout, os.Stdout)
	runErr := cmd.Wait()
	if tryAgain && digestErr == nil && anyFailed(outcomes) {
		if again(outcomes, os.Stdout, alone(args)); !anyFailed(outcomes) {
			runErr = nil
		}
	}
	if runErr != nil && !anyFailed(outcomes) {
		// go test itself gave up: a pattern without packages, a broken go.mod.
		outcomes = append(outcomes, outcome{pkg: "step", test: "go test " + strings.Join(args, " "), failed: true})
	}
	return errors.Join(digestErr, keep(file, on(where, outcomes)), runErr)
}

// on makes the outcomes those of a place: a test that passes on one and fails on
// another is two.
func on(where string, outcomes []outcome) []outcome {
	if where != "" {
		for i := range outcomes {
			outcomes[i].pkg += " on " + where
		}
	}
	return outcomes
}

func anyFailed(outcomes []outcome) bool {
	for _, o := range outcomes {
		if o.failed {
			return true
		}
	}
	return false
}

// digest reads the events of a run to their end, writes a line for each package,
// with what its tests say of themselves, and the output of what failed, and
// returns what came of each test.
func digest(r io.Reader, w io.Writer) ([]outcome, error) {
	type key struct{ pkg, test string }
	var (
		outcomes []outcome
		output   = map[key]*strings.Builder{} // of tests and packages that have not passed
		ran      = map[string]int{}           // tests by package
		bad      = map[string]int{}           // failed ones
		skipped  = map[string]int{}
		said     = map[string][]string{} // by package
	)
	tell := func(k key) {
		if b := output[k]; b != nil {
			fmt.Fprint(w, b.String())
			delete(output, k)
		}
	}
	decoder := json.NewDecoder(r)
	for {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return outcomes, nil
		} else if err != nil {
			return outcomes, fmt.Errorf("go test -json: %w", err)
		}
		k := key{e.Package, e.Test}
		switch e.Action {
		case "build-output":
			fmt.Fprint(w, e.Output)
		case "output":
			if output[k] == nil {
				output[k] = new(strings.Builder)
			}
			output[k].WriteString(e.Output)
		case "attr":
			said[e.Package] = append(said[e.Package], fmt.Sprintf("      %s: %s %s", e.Test, e.Value, e.Key))
		case "pass", "fail", "skip":
			failed := e.Action == "fail"
			if e.Test != "" {
				if e.Action == "skip" {
					skipped[e.Package]++
				} else {
					outcomes = append(outcomes, outcome{pkg: e.Package, test: e.Test, failed: failed})
				}
				ran[e.Package]++
				if failed {
					bad[e.Package]++
					tell(k)
				}
				delete(output, k)
				continue
			}
			if failed {
				// What is left belongs to tests that never ended, and to the package.
				for left := range output {
					if left.pkg == e.Package {
						tell(left)
					}
				}
				if bad[e.Package] == 0 {
					outcomes = append(outcomes, outcome{pkg: e.Package, test: outsideTests, failed: true})
				}
			}
			delete(output, k)
			switch {
			case failed:
				fmt.Fprintf(w, "FAIL  %-55s %6.1f s\n", e.Package, e.Elapsed)
			case ran[e.Package] > 0:
				fmt.Fprintf(w, "ok    %-55s %6.1f s  %d tests%s\n", e.Package, e.Elapsed, ran[e.Package], skips(skipped[e.Package]))
			}
			for _, line := range said[e.Package] {
				fmt.Fprintln(w, line)
			}
		}
	}
}

func skips(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d SKIPPED", n)
}
