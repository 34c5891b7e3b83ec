package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReportsOfOtherLanguagesAreCounted(t *testing.T) {
	const report = `<testsuites><testcase name="alone" classname="test"/>
	<testsuite name="a"><testcase name="one/1" classname="c"/><testcase name="one/2" classname="c"><failure message="x"/></testcase>
	<testsuite name="inner"><testcase name="one/1" classname="c"><error/></testcase><testcase name="later"><skipped/></testcase></testsuite></testsuite></testsuites>`
	outcomes, skipped, err := readReport("py", []byte(report))
	if err != nil {
		t.Fatal(err)
	}
	if passed, failed := count(outcomes); passed != 2 || failed != 2 || skipped != 1 {
		t.Errorf("%d passed, %d failed, %d skipped: %v", passed, failed, skipped, outcomes)
	}
	if _, _, err := readReport("py", []byte("<testsuites><testcase")); err == nil {
		t.Error("half a report was taken")
	}
}

func TestRunThatSaysNothingHasFailed(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		passed int
		failed int
	}{
		"good":                         {`echo '<testsuites><testcase name="a"/></testsuites>' >"$0"`, 1, 0},
		"no report":                    {`true`, 0, 1},
		"no test":                      {`echo '<testsuites/>' >"$0"`, 0, 1},
		"fails behind its tests":       {`echo '<testsuites><testcase name="a"/></testsuites>' >"$0"; exit 3`, 1, 1},
		"a failed test and exit 0":     {`echo '<testsuites><testcase name="a"><failure/></testcase></testsuites>' >"$0"`, 0, 1},
		"the report of an earlier run": {`exit 1`, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, report := filepath.Join(dir, "outcomes"), filepath.Join(dir, "report.xml")
			if err := os.WriteFile(report, []byte(`<testsuites><testcase name="old"/></testsuites>`), 0o600); err != nil {
				t.Fatal(err)
			}
			err := junit(file, "step", report, []string{"sh", "-c", c.script, report})
			outcomes, readErr := read([]string{file})
			if readErr != nil {
				t.Fatal(readErr)
			}
			passed, failed := count(outcomes)
			if passed != c.passed || failed != c.failed || (err != nil) != (failed > 0) {
				t.Errorf("%d passed, %d failed, %v", passed, failed, err)
			}
		})
	}
}
