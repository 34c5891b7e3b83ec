package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// How many failed tests a run may have for them to be run again, and how often
// each then has to pass.
const (
	mostUnstable = 3
	againCount   = 5
)

// again runs the tests that failed once more, each alone and several times, by
// runAlone. One that always passes then is unstable: it counts as passed and is
// named, with what it said, wherever the count is. A package that failed outside
// its tests stays failed, and so does all where many failed.
func again(outcomes []outcome, w io.Writer, runAlone func(pkg, test string) error) {
	type key struct{ pkg, test string }
	top := func(o outcome) key {
		test, _, _ := strings.Cut(o.test, "/")
		return key{o.pkg, test}
	}
	failed := map[key]bool{}
	for _, o := range outcomes {
		if o.failed {
			failed[top(o)] = true
		}
		if o.failed && (o.test == outsideTests || o.pkg == "step") {
			return
		}
	}
	if len(failed) > mostUnstable {
		return
	}
	for _, k := range slices.SortedFunc(maps.Keys(failed), func(a, b key) int { return strings.Compare(a.pkg+a.test, b.pkg+b.test) }) {
		if err := runAlone(k.pkg, k.test); err != nil {
			fmt.Fprintf(w, "FAIL  %s %s failed again when it was run alone: %v\n", k.pkg, k.test, err)
			continue
		}
		fmt.Fprintf(w, "UNSTABLE  %s %s failed, and passed %d times when it was run alone\n", k.pkg, k.test, againCount)
		for i, o := range outcomes {
			if o.failed && top(o) == k {
				outcomes[i].failed, outcomes[i].unstable = false, true
			}
		}
	}
}

// alone runs one test by `go test` with the flags of a whole run.
func alone(args []string) func(pkg, test string) error {
	return func(pkg, test string) error {
		run := append([]string{"test", "-run", "^" + test + "$", "-count", strconv.Itoa(againCount)}, flags(args)...)
		cmd := exec.Command("go", append(run, pkg)...) //nolint:gosec,noctx // as in step
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	}
}

// flags are the arguments of a run of `go test` before its packages.
func flags(args []string) []string {
	isPackage := func(arg string) bool { return strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "fanfare.dev/") }
	if i := slices.IndexFunc(args, isPackage); i >= 0 {
		return args[:i]
	}
	return args
}
