package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An outcome is what came of one test in one run.
type outcome struct {
	pkg, test string
	failed    bool
	unstable  bool // it failed, and passed when it was run again alone
}

// keep appends outcomes to file.
func keep(file string, outcomes []outcome) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for _, o := range outcomes {
		word := "pass"
		switch {
		case o.failed:
			word = "fail"
		case o.unstable:
			word = "unstable"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", word, o.pkg, o.test)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// read reads what keep wrote.
func read(files []string) ([]outcome, error) {
	var outcomes []outcome
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
			if len(fields) != 3 {
				return nil, fmt.Errorf("%s: not an outcome: %q", file, line)
			}
			outcomes = append(outcomes, outcome{pkg: fields[1], test: fields[2], failed: fields[0] == "fail", unstable: fields[0] == "unstable"})
		}
	}
	return outcomes, nil
}

// count counts each test once. A test with subtests counts by its subtests,
// unless it failed and none of them did.
func count(outcomes []outcome) (passed, failed int) {
	type key struct{ pkg, test string }
	failing := make(map[key]bool, len(outcomes)) // every test; true: failed in one of its runs
	for _, o := range outcomes {
		k := key{o.pkg, o.test}
		failing[k] = failing[k] || o.failed
	}
	parents := map[key]bool{} // true: one of its subtests failed
	for k, bad := range failing {
		for i, c := range k.test {
			if c == '/' && k.pkg != "step" {
				parent := key{k.pkg, k.test[:i]}
				parents[parent] = parents[parent] || bad
			}
		}
	}
	for k, bad := range failing {
		childFailed, isParent := parents[k]
		switch {
		case bad && !childFailed:
			failed++
		case !bad && !isParent:
			passed++
		}
	}
	return passed, failed
}

// unstable names the tests that were, for the end of the last line.
func unstable(outcomes []outcome) string {
	var names []string
	for _, o := range outcomes {
		if test, _, isPart := strings.Cut(o.test, "/"); o.unstable && !isPart {
			names = append(names, o.pkg+" "+test)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d UNSTABLE: %s", len(names), strings.Join(names, ", "))
}
