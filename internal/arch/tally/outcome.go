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
		if o.failed {
			word = "fail"
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
			outcomes = append(outcomes, outcome{pkg: fields[1], test: fields[2], failed: fields[0] == "fail"})
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
