package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhatPassesAloneIsUnstableAndNamed(t *testing.T) {
	outcomes := []outcome{
		{pkg: "p", test: "A"}, {pkg: "p", test: "B/x", failed: true}, {pkg: "p", test: "B/y"}, {pkg: "p", test: "B", failed: true}, {pkg: "q", test: "B", failed: true},
	}
	var said strings.Builder
	var ran []string
	again(outcomes, &said, func(pkg, test string) error {
		ran = append(ran, pkg+" "+test)
		if pkg == "q" {
			return errors.New("exit status 1")
		}
		return nil
	})
	if want := []string{"p B", "q B"}; !slices.Equal(ran, want) {
		t.Errorf("%v were run again, want %v", ran, want)
	}
	if passed, failed := count(outcomes); passed != 3 || failed != 1 {
		t.Errorf("%d passed, %d failed: %v", passed, failed, outcomes)
	}
	if got, want := unstable(outcomes), ", 1 UNSTABLE: p B"; got != want {
		t.Errorf("the last line ends in %q, want %q", got, want)
	}
	if !strings.Contains(said.String(), "UNSTABLE  p B failed, and passed") || !strings.Contains(said.String(), "q B failed again") {
		t.Errorf("it said %q", said.String())
	}
}

func TestWhatIsNotRunAgain(t *testing.T) {
	for name, outcomes := range map[string][]outcome{
		"a package that failed outside its tests": {{pkg: "p", test: "A", failed: true}, {pkg: "q", test: outsideTests, failed: true}},
		"a step":          {{pkg: "step", test: "go test ./...", failed: true}},
		"more than a few": {{pkg: "p", test: "A", failed: true}, {pkg: "p", test: "B", failed: true}, {pkg: "p", test: "C", failed: true}, {pkg: "p", test: "D", failed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(outcomes)
			again(outcomes, &strings.Builder{}, func(pkg, test string) error {
				t.Errorf("%s %s was run again", pkg, test)
				return nil
			})
			if !slices.Equal(outcomes, before) {
				t.Errorf("outcomes %v became %v", before, outcomes)
			}
		})
	}
}

// TestAFailedTestIsRunAgainByGo has two tests that fail in their first run, one of
// them in every run, in a module of their own.
func TestAFailedTestIsRunAgainByGo(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module fanfare.dev/again\n\ngo 1.26\n",
		"a_test.go": `package again

import (
	"os"
	"testing"
)

func TestFirst(t *testing.T) {
	if _, err := os.Stat("ran"); err != nil {
		os.WriteFile("ran", nil, 0o600)
		t.Error("the first run")
	}
}

func TestAlways(t *testing.T) {
	if os.Getenv("FANFARE_TEST_ALWAYS") != "" {
		t.Error("always")
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, c := range []struct {
		always           string
		failed, unstable int
	}{{"", 0, 1}, {"yes", 1, 1}} {
		t.Setenv("FANFARE_TEST_ALWAYS", c.always)
		if err := os.Remove("ran"); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "outcomes")
		err := test(file, "here", []string{"-again", "-count=1", "./..."})
		outcomes, readErr := read([]string{file})
		if readErr != nil {
			t.Fatal(readErr)
		}
		_, failed := count(outcomes)
		if failed != c.failed || strings.Count(unstable(outcomes), "TestFirst") != c.unstable || (err != nil) != (failed > 0) {
			t.Errorf("%v, %v", outcomes, err)
		}
	}
}
