package arch

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// A call is a use of package.Name that is refused in some files.
type call struct {
	pkg     string // import path
	names   []string
	refused func(*file) bool
	why     string
	do      string

	value bool // handing the function on is fine, as the default of a clock is
}

var calls = []call{
	{"fmt", []string{"Print", "Printf", "Println"},
		func(f *file) bool {
			return under(f, "internal") && f.ast.Name.Name != "main" && !strings.HasSuffix(f.path, "example_test.go")
		},
		"standard output belongs to the command that a person started",
		"log with log/slog, or write to an io.Writer that you were given", false},
	{"net/http", []string{"Server", "ListenAndServe", "ListenAndServeTLS", "Serve", "ServeTLS", "NewServeMux", "Handle", "HandleFunc", "DefaultServeMux"},
		func(f *file) bool {
			return !f.isTest() && !under(f, "internal/httpapi", "internal/compat", "internal/bench", "internal/sink")
		},
		"one HTTP server, with one set of time-outs, limits and keys",
		"give api a handler (bench may run the bare handler that ours is held against, and sink the receiver that stands in for others)", false},
	{"net/http", []string{"Get", "Post", "PostForm", "Head", "DefaultClient"},
		func(f *file) bool { return true },
		"the default client waits for ever", "use a client with a time-out and a request with a context", false},
	{"time", []string{"Now"},
		func(f *file) bool {
			return !f.isTest() && under(f, "internal/pipeline/ingest", "internal/condition", "internal/pipeline/plan", "internal/render",
				"internal/pipeline/deliver", "internal/pipeline/record", "internal/people/registry") && realTime(f) == ""
		},
		"what a stage decides by time must be decided by the clock that tests set",
		"take a clock.Clock; or, for sockets and plain measuring, add the file to realTimes with the reason", true},
	{"time", []string{"Sleep"},
		func(f *file) bool { return f.isTest() },
		"a sleeping test is slow on a quick machine and fails on a slow one",
		"wait for a signal or a channel, or use testing/synctest", false},
	{"time", []string{"Tick"},
		func(f *file) bool { return true },
		"its ticker cannot be stopped", "use time.NewTicker", false},
	{"os", []string{"Exit"},
		func(f *file) bool { return !f.isTest() && f.ast.Name.Name != "main" },
		"nothing is torn down behind it", "return an error", false},
	{"log/slog", []string{"Debug", "Info", "Warn", "Error", "SetDefault"},
		func(f *file) bool { return under(f, "internal") && !f.isTest() && !under(f, "internal/server") },
		"no package state: who makes the part chooses its log", "take a *slog.Logger", false},
}

// realTimes are the places in stages that may ask the machine for the time.
var realTimes = []struct{ dir, why string }{
	{"internal/pipeline/deliver/smtp", "deadlines of sockets and the time of a reply are the machine's; no decision hangs on them"},
	{"internal/pipeline/deliver/webhook", "time-outs, what a request is signed with and the time of an answer are the machine's; no decision hangs on them"},
	{"internal/pipeline/deliver/remote", "the silence and the age of a release are measured on the monotonic clocks of two machines; what follows from an outcome is decided elsewhere"},
	{"internal/pipeline/deliver/worker", "the time of an answer is the machine's; no decision hangs on it"},
	{"internal/pipeline/deliver/file", "the time of writing, and how long the disk takes, are the machine's; only by which call files are synced hangs on it"},
}

func realTime(f *file) string {
	for _, r := range realTimes {
		if under(f, r.dir) || f.path == r.dir {
			return r.why
		}
	}
	return ""
}

func under(f *file, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return covers(dir, f.dir()) })
}

// localName is what the file calls the package at path, "" where it has none.
func localName(f *file, path string) string {
	for _, spec := range f.ast.Imports {
		if spec.Path.Value != `"`+path+`"` {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

func refusedCalls(f *file) []finding {
	if !f.isGo() {
		return nil
	}
	var found []finding
	for _, c := range calls {
		name := localName(f, c.pkg)
		if name == "" || !c.refused(f) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if c.value {
				made, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				n = made.Fun
			}
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains(c.names, sel.Sel.Name) {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
				found = append(found, finding{f.path, f.line(sel.Pos()), c.pkg + "." + sel.Sel.Name + " in " + f.dir(), c.why, c.do})
			}
			return true
		})
	}
	return found
}

func TestRefusedCallsAreNotMade(t *testing.T) { check(t, refusedCalls) }

// skips finds tests that leave themselves out.
func skips(f *file) []finding {
	if !f.isGo() || !f.isTest() {
		return nil
	}
	var found []finding
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		handle := slices.Contains([]string{"t", "b", "f", "tb"}, x.Name) && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name)
		if handle || x.Name == "testing" && sel.Sel.Name == "Short" {
			found = append(found, finding{f.path, f.line(sel.Pos()), x.Name + "." + sel.Sel.Name,
				"a skipped test passes without having looked", "make the test able to run everywhere, or put it behind a build tag that CI sets"})
		}
		return true
	})
	return found
}

func TestNoTestIsSkipped(t *testing.T) { check(t, skips) }
