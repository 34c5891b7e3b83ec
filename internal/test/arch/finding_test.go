package arch

import (
	"fmt"
	"testing"
)

// A finding is one breach of a rule.
type finding struct {
	path string
	line int
	rule string // what is broken
	why  string // the reason for the rule
	do   string // the way out
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s\n    why: %s\n    do:  %s", f.path, f.line, f.rule, f.why, f.do)
}

// A rule looks at one file.
type rule func(*file) []finding

// check runs a rule over the project and reports what it finds.
func check(t *testing.T, r rule) {
	t.Helper()
	for _, f := range load(t) {
		report(t, r(f))
	}
}

func report(t *testing.T, found []finding) {
	t.Helper()
	for _, f := range found {
		t.Error(f)
	}
}
