package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// A word is a text that no file may hold. The patterns are put together from
// halves, so that this file does not hold them either.
type word struct {
	pattern *regexp.Regexp
	rule    string
	why     string
	do      string
}

var words = []word{
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`), "a note to do it later",
		"what is not done is said where its users look, or is an issue", "do it, or write it down in the docs"},
	{regexp.MustCompile(`(^|[^A-Za-z0-9_.~-])/(wo` + `rk|ro` + `ot|ho` + `me/[a-z]+)/`), "a path of one machine",
		"the project builds and runs anywhere", "use a relative path, t.TempDir or a setting"},
	{regexp.MustCompile(`/tm` + `p/(brief|house)`), "a path of one machine",
		"the project builds and runs anywhere", "remove it"},
	{regexp.MustCompile(`(?i)\bGO` + `PROXY\s*[:?]?=|https?://[a-z0-9.-]*\b(goproxy|artifactory|nexus|registry|mirror|pypi|npmjs)\b[a-z0-9-]*\.`), "the name of a module registry or proxy",
		"where modules come from is a choice of the machine", "leave it to the environment"},
	{regexp.MustCompile(`-----BEGIN [A-Z ]*PRIV` + `ATE KEY`), "a private key",
		"a secret in a repository is public", "make it when it is needed"},
}

// lockFiles are written by tools, not by people.
var lockFiles = regexp.MustCompile(`(^|/)(go\.mod|go\.sum|LICENSE)$`)

func refusedWords(f *file) []finding {
	if lockFiles.MatchString(f.path) {
		return nil
	}
	var found []finding
	for _, w := range words {
		for _, at := range w.pattern.FindAllStringIndex(f.text, -1) {
			line := 1 + strings.Count(f.text[:at[0]], "\n")
			found = append(found, finding{f.path, line, w.rule + ": " + strings.TrimSpace(f.text[at[0]:at[1]]), w.why, w.do})
		}
	}
	return found
}

func TestRefusedWordsAreNotWritten(t *testing.T) { check(t, refusedWords) }

// hollow are names that say nothing of what is behind them.
var hollow = regexp.MustCompile(`(?i)^(util|utils|common|helper|helpers|manager|misc|base|shared)$`)

func names(f *file) []finding {
	if !f.isGo() {
		return nil
	}
	var found []finding
	if hollow.MatchString(f.ast.Name.Name) || hollow.MatchString(strings.TrimSuffix(f.path[strings.LastIndexByte(f.path, '/')+1:], ".go")) {
		found = append(found, finding{f.path, f.line(f.ast.Name.Pos()), "a hollow name",
			"a name that fits everything collects everything", "name it after what it holds"})
	}
	if !f.isTest() {
		return found
	}
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && strings.Contains(fn.Name.Name, "Sle"+"ep") {
			found = append(found, finding{f.path, f.line(fn.Pos()), "test " + fn.Name.Name,
				"the name of a test tells the promise, and waiting is none", "name what is true afterwards"})
		}
	}
	return found
}

func TestNamesSaySomething(t *testing.T) { check(t, names) }

// rootComments finds exported words of the root package that have no comment.
func rootComments(f *file) []finding {
	if !f.isGo() || f.isTest() || f.dir() != "." {
		return nil
	}
	var found []finding
	missing := func(pos token.Pos, name string) {
		found = append(found, finding{f.path, f.line(pos), name + " has no comment",
			"the root package is the vocabulary of the project", "say what it is, with shapes, units and errors"})
	}
	for _, decl := range f.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil {
				missing(d.Pos(), d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
						missing(s.Pos(), s.Name.Name)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						missing(s.Pos(), s.Names[0].Name)
					}
				}
			}
		}
	}
	return found
}

func TestRootWordsAreExplained(t *testing.T) { check(t, rootComments) }
