package arch

import (
	"strings"
	"testing"
)

// A rule that cannot fail guards nothing: each is shown a breach and a source
// that is in order.
func TestEachRuleSeesItsBreach(t *testing.T) {
	const root = "// Package fanfare is the vocabulary.\npackage fanfare\n"
	nothing := func(*file, string) bool { return false }
	tests := []struct {
		name, path, text string
		rule             rule
		want             string // part of the finding; empty: none
	}{
		{"stage imports stage", "internal/condition/x.go", `package match; import "fanfare.dev/fanfare/internal/pipeline/plan"`, direction, "internal/condition imports internal/pipeline/plan"},
		{"stage imports store", "internal/pipeline/record/x.go", `package record; import "fanfare.dev/fanfare/internal/store/sqlite"`, direction, "record imports"},
		{"stage's test imports store", "internal/pipeline/record/x_test.go", `package record; import "fanfare.dev/fanfare/internal/store/sqlite"`, direction, ""},
		{"stage's test imports stage", "internal/pipeline/record/x_test.go", `package record; import "fanfare.dev/fanfare/internal/pipeline/ingest"`, direction, "record imports"},
		{"stage imports root", "internal/condition/x.go", `package match; import "fanfare.dev/fanfare"`, direction, ""},
		{"driver imports driver", "internal/pipeline/deliver/smtp/x.go", `package smtp; import "fanfare.dev/fanfare/internal/pipeline/deliver/file"`, direction, "deliver/smtp imports"},
		{"deliver imports its driver", "internal/pipeline/deliver/x.go", `package deliver; import "fanfare.dev/fanfare/internal/pipeline/deliver/smtp"`, direction, ""},
		{"clock knows the domain", "internal/clock/x.go", `package clock; import "fanfare.dev/fanfare"`, direction, "internal/clock imports ."},
		{"root imports a package", "x.go", root + `import "fanfare.dev/fanfare/internal/clock"`, direction, ". imports internal/clock"},
		{"client looks inside", "client/x.go", `package client; import "fanfare.dev/fanfare/internal/httpapi"`, direction, "client imports"},
		{"server names a concrete type", "internal/server/x.go", `package server; import "fanfare.dev/fanfare/internal/pipeline/deliver/smtp"`, direction, ""},
		{"a package from nowhere", "internal/elsewhere/x.go", `package elsewhere`, direction, "no place in the tree"},

		{"root imports a library", "x.go", root + `import "golang.org/x/sync/errgroup"`, rootIsPure, "errgroup"},
		{"root imports the standard library", "x.go", root + `import "encoding/json"`, rootIsPure, ""},
		{"evaluator imports a library", "internal/condition/evaluator/x.go", "package evaluator\n" + `import "cel.dev/cel-go/cel"`, evaluatorIsPure, "cel-go"},
		{"a test of evaluator imports a library", "internal/condition/evaluator/x_test.go", "package evaluator\n" + `import "cel.dev/cel-go/cel"`, evaluatorIsPure, ""},

		{"nats outside bus", "internal/pipeline/ingest/x.go", `package collect; import "github.com/nats-io/nats.go/jetstream"`, librariesAtHome, "nats"},
		{"nats in bus", "internal/bus/x.go", `package bus; import "github.com/nats-io/nats.go"`, librariesAtHome, ""},
		{"sqlite outside store", "internal/people/registry/x.go", `package registry; import "zombiezen.com/go/sqlite/sqlitex"`, librariesAtHome, "sqlite"},
		{"cgo", "internal/condition/x.go", "package match\n\nimport \"C\"\n", librariesAtHome, "imports C"},
		{"gob in a test", "internal/condition/x_test.go", `package match; import "encoding/gob"`, librariesAtHome, "gob"},
		{"slog is not log", "internal/condition/x.go", `package match; import "log/slog"`, librariesAtHome, ""},
		{"old math/rand", "internal/condition/x.go", `package match; import "math/rand"`, librariesAtHome, "math/rand"},
		{"new math/rand", "internal/condition/x.go", `package match; import "math/rand/v2"`, librariesAtHome, ""},
		{"huma outside api", "internal/server/x.go", `package server; import "github.com/danielgtaylor/huma/v2"`, librariesAtHome, "huma"},

		{"print inside", "internal/server/x.go", `package server; import "fmt"; func f() { fmt.Println() }`, refusedCalls, "fmt.Println"},
		{"print under another name", "internal/server/x.go", `package server; import p "fmt"; func f() { p.Println() }`, refusedCalls, "fmt.Println"},
		{"print by a command", "cmd/fanfare/x.go", `package main; import "fmt"; func f() { fmt.Println() }`, refusedCalls, ""},
		{"a second server", "internal/admin/report/x.go", `package report; import "net/http"; var s http.Server`, refusedCalls, "http.Server"},
		{"the server", "internal/httpapi/x.go", `package api; import "net/http"; var s http.Server`, refusedCalls, ""},
		{"clock of the machine", "internal/pipeline/deliver/x.go", `package deliver; import "time"; var t = time.Now().Add(1)`, refusedCalls, "time.Now"},
		{"default of a clock", "internal/pipeline/deliver/x.go", `package deliver; import "time"; var now = time.Now`, refusedCalls, ""},
		{"deadline of a socket", "internal/pipeline/deliver/smtp/x.go", `package smtp; import "time"; var t = time.Now()`, refusedCalls, ""},
		{"sleeping test", "internal/pipeline/deliver/x_test.go", `package deliver; import "time"; func f() { time.Sleep(1) }`, refusedCalls, "time.Sleep"},
		{"exit", "internal/server/x.go", `package server; import "os"; func f() { os.Exit(1) }`, refusedCalls, "os.Exit"},

		{"skipped test", "internal/server/x_test.go", `package server; func f(t *testing.T) { t.Skipf("no") }`, skips, "t.Skipf"},
		{"short test", "internal/server/x_test.go", `package server; var short = testing.Short()`, skips, "testing.Short"},

		{"later", "internal/server/x.go", "package server\n\n// TO" + "DO: finish\n", refusedWords, "x.go:3"},
		{"path of a machine", "docs/x.md", "see `/ro" + "ot/fanfare`", refusedWords, "path of one machine"},
		{"path of an API", "docs/x.md", "POST https://a.example/v1/wo" + "rk/7", refusedWords, ""},
		{"registry", "x.sh", "GO" + "PROXY=direct go build", refusedWords, "registry or proxy"},
		{"registry is a package", "docs/x.md", "the registry. It keeps", refusedWords, ""},

		{"hollow file", "internal/server/util.go", "package server", names, "hollow"},
		{"hollow package", "internal/common/x.go", "package common", names, "hollow"},
		{"waiting as a promise", "internal/server/x_test.go", "package server; func TestSle" + "eps() {}", names, "TestSle"},

		{"invented test", "docs/x.md", "held by `TestOfNothing`", named("test", testWord, nothing), "x.md:1: no test TestOfNothing"},
		{"invented target", "README.md", "\n    make nothing\n", named("target", makeWord, nothing), "README.md:2"},
		{"dead link", "docs/x.md", "see [it](gone.md#part)", named("file", link, nothing), "no file gone.md"},
		{"link to a site", "docs/x.md", "see [it](https://example.org/)", named("file", link, nothing), ""},

		{"unexplained type", "x.go", root + "type T int", rootComments, "T has no comment"},
		{"unexplained method", "x.go", root + "func (t T) M() {}", rootComments, "M has no comment"},
		{"explained group", "x.go", root + "// The names.\nconst (\n\tA = 1\n\tB = 2\n)\n", rootComments, ""},

		{"long file", "internal/server/x.go", "package server\n" + strings.Repeat("\n", maxLines), tooLong, "801 lines"},
		{"long enough", "internal/server/x.go", "package server\n" + strings.Repeat("\n", maxLines-1), tooLong, ""},
		{"layout", "internal/server/x.go", "package server\nvar  x = 1\n", formatted, "x.go:2"},
		{"no package comment", "internal/server/x.go", "package server\n", func(f *file) []finding { return packageComments([]*file{f}) }, "no comment"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := parse(test.path, test.text)
			if err != nil {
				t.Fatal(err)
			}
			found := test.rule(f)
			switch {
			case test.want == "" && len(found) > 0:
				t.Errorf("found where all is in order: %v", found)
			case test.want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), test.want)):
				t.Errorf("found %v, want one with %q", found, test.want)
			}
		})
	}
}
