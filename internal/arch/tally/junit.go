package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// A suite is an element testsuite or testsuites of a JUnit report, the form in
// which test runners of other languages say what came of each test.
type suite struct {
	Name   string     `xml:"name,attr"`
	Suites []suite    `xml:"testsuite"`
	Cases  []testCase `xml:"testcase"`
}

type testCase struct {
	Name    string    `xml:"name,attr"`
	Class   string    `xml:"classname,attr"`
	Failure *struct{} `xml:"failure"`
	Error   *struct{} `xml:"error"`
	Skipped *struct{} `xml:"skipped"`
}

// junit runs a command that writes a report, and keeps an outcome for each test
// in it. A command that fails without a failed test, that writes no report or
// that ran no test is one failed outcome.
func junit(file, name, report string, command []string) error {
	if err := os.Remove(report); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // as in step
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	runErr := cmd.Run()
	text, err := os.ReadFile(report)
	var outcomes []outcome
	skipped := 0
	if err == nil {
		outcomes, skipped, err = readReport(name, text)
	}
	if err != nil || len(outcomes) == 0 || runErr != nil && !anyFailed(outcomes) {
		outcomes = append(outcomes, outcome{pkg: "step", test: name, failed: true})
	}
	fmt.Printf("%d tests%s\n", len(outcomes), skips(skipped))
	if keepErr := keep(file, outcomes); keepErr != nil {
		return keepErr
	}
	if runErr == nil && err == nil && anyFailed(outcomes) {
		return fmt.Errorf("%s: the report says that tests failed", name)
	}
	return errors.Join(err, runErr)
}

// readReport returns what came of each test. Names are made one word, as
// outcomes are lines with tabs.
func readReport(name string, text []byte) (outcomes []outcome, skipped int, err error) {
	var root suite
	if err := xml.Unmarshal(text, &root); err != nil { //nolint:gosec // plain structs of strings, from a program that the Makefile names
		return nil, 0, fmt.Errorf("%s: the report: %w", name, err)
	}
	var walk func(path string, s suite)
	walk = func(path string, s suite) {
		for _, c := range s.Cases {
			if c.Skipped != nil {
				skipped++
				continue
			}
			// A slash would make it a subtest of a Go test.
			test := strings.Join(strings.Fields(strings.ReplaceAll(path+c.Class+": "+c.Name, "/", " ")), " ")
			outcomes = append(outcomes, outcome{pkg: name, test: test, failed: c.Failure != nil || c.Error != nil})
		}
		for _, inner := range s.Suites {
			walk(path+inner.Name+": ", inner)
		}
	}
	walk("", root)
	return outcomes, skipped, nil
}
