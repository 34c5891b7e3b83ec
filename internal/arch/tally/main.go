// Command tally runs the steps of `make test`, keeps what came of each, and
// adds it up, so that the last line of a run is a count and not a guess.
//
//	tally step FILE NAME COMMAND...   runs a command; one outcome
//	tally test FILE NAME [-again] ARGUMENT...  runs `go test -json ARGUMENT...`; an outcome for each test
//	tally test-on WHERE FILE NAME [-again] ARGUMENT... the same; these count beside those of other places
//	tally junit FILE NAME REPORT COMMAND...  runs a command that writes a JUnit report; an outcome for each test
//	tally total FILE...               prints "N passed, N failed", and what was unstable
//
// Outcomes are lines of FILE, appended. A test that ran in several steps counts
// once, and has failed if it failed in one of them. Of a test with subtests the
// subtests count. A package that cannot be built or ends outside a test counts
// as one failed test. The exit status is 1 where anything failed.
//
// With -again up to three failed tests are run again, each alone and five times.
// One that passes each time was unstable: it counts as passed, and the last line
// names it.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

func main() {
	err := run(os.Args[1:])
	if err == nil {
		return
	}
	if !errors.Is(err, errCounted) {
		fmt.Fprintln(os.Stderr, "tally:", err)
	}
	os.Exit(1)
}

// errCounted says nothing: the count before it has said all, as the last line.
var errCounted = errors.New("failed")

func run(args []string) error {
	switch {
	case len(args) >= 2 && args[0] == "total":
		return total(args[1:])
	case len(args) >= 4 && args[0] == "step":
		return timed(args[2], func() error { return step(args[1], args[2], args[3:]) })
	case len(args) >= 4 && args[0] == "test":
		return timed(args[2], func() error { return test(args[1], "", args[3:]) })
	case len(args) >= 5 && args[0] == "test-on":
		return timed(args[3], func() error { return test(args[2], args[1], args[4:]) })
	case len(args) >= 5 && args[0] == "junit":
		return timed(args[2], func() error { return junit(args[1], args[2], args[3], args[4:]) })
	default:
		return fmt.Errorf("usage: tally step FILE NAME COMMAND... | test FILE NAME [-again] ARGUMENT... | test-on WHERE FILE NAME [-again] ARGUMENT... | junit FILE NAME REPORT COMMAND... | total FILE")
	}
}

// timed puts a heading above work and its duration below.
func timed(name string, work func() error) error {
	fmt.Printf("\n== %s\n", name)
	begun := time.Now()
	err := work()
	word := "done"
	if err != nil {
		word = "FAILED"
	}
	fmt.Printf("-- %s: %s, %.1f s\n", name, word, time.Since(begun).Seconds())
	return err
}

func step(file, name string, command []string) error {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // running what the Makefile says is the purpose; Ctrl-C reaches the whole group
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if keepErr := keep(file, []outcome{{pkg: "step", test: name, failed: err != nil}}); keepErr != nil {
		return keepErr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func total(files []string) error {
	outcomes, err := read(files)
	if err != nil {
		return err
	}
	passed, failed := count(outcomes)
	fmt.Printf("%d passed, %d failed%s\n", passed, failed, unstable(outcomes))
	if failed > 0 || passed == 0 {
		return errCounted
	}
	return nil
}
