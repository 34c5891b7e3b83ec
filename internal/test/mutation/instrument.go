package mutation

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Site is a place that can be changed.
type Site struct {
	Number   int
	Function string // with its package and its receiver, such as condition.accessPath.takeRange
	Kind     string // condition, comparison, assignment or call
	Ordinal  int    // among the sites of this kind in the function, from 1
	Code     string // source code of the place, in one line
}

// Name names the site whatever file or line it is in.
func (s *Site) Name() string { return fmt.Sprintf("%s %s %d", s.Function, s.Kind, s.Ordinal) }

// helpers is the source that each changed package gets, with a verb for its name. Site 0 is none.
const helpers = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var mutantChosen, mutantCoverage = func() (int, *os.File) {
	if name := os.Getenv("FANFARE_MUTANT_COVERAGE"); name != "" {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		return 0, file
	}
	n, _ := strconv.Atoi(os.Getenv("FANFARE_MUTANT"))
	return n, nil
}()

var mutantsSeen sync.Map

// mutant reports whether a site is the one that is changed.
func mutant(n int) bool {
	if mutantCoverage != nil {
		if _, seen := mutantsSeen.LoadOrStore(n, true); !seen {
			mutantCoverage.WriteString(strconv.Itoa(n) + "\n")
		}
	}
	return n == mutantChosen
}

// mutateCondition negates a condition at a site.
func mutateCondition(n int, condition bool) bool { return condition != mutant(n) }
`

// An instrumenter rewrites the functions of packages.
type instrumenter struct {
	files *token.FileSet
	sites []Site

	function string
	ordinals map[string]int
}

// Instrument reads the sources in some folders and returns the changed ones by path, with the
// sites in them. A site is named after its package, which is the name of the folder. skip
// leaves functions out.
func Instrument(dirs []string, skip func(function string) bool) (overlay map[string][]byte, sites []Site, err error) {
	in := &instrumenter{files: token.NewFileSet()}
	overlay = map[string][]byte{}
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, nil, err
		}
		if len(paths) == 0 {
			return nil, nil, fmt.Errorf("no sources in %s", dir)
		}
		overlay[filepath.Join(dir, "mutants_of_this_run.go")] = fmt.Appendf(nil, helpers, filepath.Base(dir))
		slices.Sort(paths)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			source, err := in.file(path, filepath.Base(dir), skip)
			if err != nil {
				return nil, nil, err
			}
			if source != nil {
				overlay[path] = source
			}
		}
	}
	return overlay, in.sites, nil
}

// file returns the changed source of a file of a package, nil if it has no site.
func (in *instrumenter) file(path, pkg string, skip func(function string) bool) ([]byte, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(in.files, path, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	before := len(in.sites)
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		if name := pkg + "." + nameOf(f); !skip(name) {
			in.function, in.ordinals = name, map[string]int{}
			in.block(f.Body)
		}
	}
	if len(in.sites) == before {
		return nil, nil
	}
	var out bytes.Buffer
	if first, _, _ := bytes.Cut(source, []byte("\n")); bytes.HasPrefix(first, []byte("//go:build")) {
		out.WriteString(string(first) + "\n\n")
	}
	file.Comments = nil // their positions are wrong where nodes are new
	if err := format.Node(&out, in.files, file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out.Bytes(), nil
}

// nameOf returns the name of a function with its receiver type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// site makes a new site of a node.
func (in *instrumenter) site(kind string, n ast.Node) int {
	in.ordinals[kind]++
	var code bytes.Buffer
	if err := format.Node(&code, in.files, n); err != nil {
		code.WriteString("?")
	}
	text := strings.Join(strings.Fields(code.String()), " ")
	if len(text) > 100 {
		text = text[:100]
	}
	in.sites = append(in.sites, Site{Number: len(in.sites) + 1, Function: in.function, Kind: kind, Ordinal: in.ordinals[kind], Code: text})
	return len(in.sites)
}

func callOf(function string, args ...ast.Expr) *ast.CallExpr {
	return &ast.CallExpr{Fun: ast.NewIdent(function), Args: args}
}

func literal(n int) ast.Expr {
	return &ast.BasicLit{Kind: token.INT, Value: fmt.Sprint(n)}
}

// condition rewrites an expression that is true or false: the whole of it, the operands of &&
// and ||, and comparisons that have a boundary.
func (in *instrumenter) condition(e ast.Expr) ast.Expr {
	number := in.site("condition", e)
	return callOf("mutateCondition", literal(number), in.inside(e))
}

// inside rewrites the operands of && and ||, and boundaries.
func (in *instrumenter) inside(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return &ast.ParenExpr{X: in.inside(e.X)}
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return &ast.UnaryExpr{Op: e.Op, X: in.inside(e.X)}
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			return &ast.BinaryExpr{X: in.condition(e.X), Op: e.Op, Y: in.condition(e.Y)}
		case token.LSS, token.LEQ, token.GTR, token.GEQ:
			return in.boundary(e)
		}
	}
	return e
}

// boundaries are the comparisons that differ where both sides are equal.
var boundaries = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

// boundary changes x < y to x <= y. The mutant evaluates both sides twice, so they must not call functions with side
// effects.
func (in *instrumenter) boundary(e *ast.BinaryExpr) ast.Expr {
	if !pure(e.X) || !pure(e.Y) {
		return e
	}
	number := in.site("comparison", e)
	other := &ast.BinaryExpr{X: e.X, Op: boundaries[e.Op], Y: e.Y}
	// mutant(n) && x <= y || !mutant(n) && x < y
	return &ast.ParenExpr{X: &ast.BinaryExpr{
		X:  &ast.BinaryExpr{X: callOf("mutant", literal(number)), Op: token.LAND, Y: other},
		Op: token.LOR,
		Y:  &ast.BinaryExpr{X: &ast.UnaryExpr{Op: token.NOT, X: callOf("mutant", literal(number))}, Op: token.LAND, Y: e},
	}}
}

// pure reports whether an expression can be evaluated twice.
func pure(e ast.Expr) bool {
	yes := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); !ok || !slices.Contains([]string{"len", "cap", "min", "max", "int", "uint", "float64", "uint32", "uint64", "int64"}, name.Name) {
				yes = false
			}
		case *ast.FuncLit:
			yes = false
		}
		return yes
	})
	return yes
}

// block rewrites the statements of a block, in place.
func (in *instrumenter) block(b *ast.BlockStmt) {
	if b != nil {
		b.List = in.statements(b.List)
	}
}

func (in *instrumenter) statements(list []ast.Stmt) []ast.Stmt {
	for i := range list {
		list[i] = in.statement(list[i])
	}
	return list
}

func (in *instrumenter) statement(s ast.Stmt) ast.Stmt {
	switch s := s.(type) {
	case *ast.BlockStmt:
		in.block(s)
	case *ast.IfStmt:
		in.functions(s.Init)
		if !mentionsConstant(s.Cond) {
			s.Cond = in.condition(s.Cond)
		}
		in.block(s.Body)
		if s.Else != nil {
			s.Else = in.statement(s.Else)
		}
	case *ast.ForStmt:
		if s.Cond != nil {
			s.Cond = in.inside(s.Cond)
		}
		in.block(s.Body)
	case *ast.RangeStmt:
		in.functions(s.X)
		in.block(s.Body)
	case *ast.SwitchStmt:
		for _, clause := range s.Body.List {
			c := clause.(*ast.CaseClause)
			if s.Tag == nil {
				for i := range c.List {
					c.List[i] = in.condition(c.List[i])
				}
			}
			c.Body = in.statements(c.Body)
		}
	case *ast.TypeSwitchStmt:
		for _, clause := range s.Body.List {
			c := clause.(*ast.CaseClause)
			c.Body = in.statements(c.Body)
		}
	case *ast.LabeledStmt:
		s.Stmt = in.statement(s.Stmt)
	case *ast.ReturnStmt:
		in.results(s)
	case *ast.AssignStmt:
		in.functions(s)
		if s.Tok != token.DEFINE && !allBlank(s.Lhs) {
			return in.skipped("assignment", s)
		}
	case *ast.IncDecStmt:
		return in.skipped("assignment", s)
	case *ast.ExprStmt:
		in.functions(s)
		if call, ok := s.X.(*ast.CallExpr); ok {
			if changesSomething(call) {
				return in.skipped("call", s)
			}
		}
	default:
		in.functions(s)
	}
	return s
}

// results changes returned values that are literally true or false.
func (in *instrumenter) results(s *ast.ReturnStmt) {
	for i, e := range s.Results {
		if isTruth(e) {
			s.Results[i] = in.condition(e)
		} else {
			in.functions(e)
		}
	}
}

// isTruth reports whether an expression is true or false by its syntax.
func isTruth(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "true" || e.Name == "false"
	case *ast.ParenExpr:
		return isTruth(e.X)
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	case *ast.BinaryExpr:
		return slices.Contains([]token.Token{token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ}, e.Op)
	}
	return false
}

// skipped makes a statement that a mutant leaves out.
func (in *instrumenter) skipped(kind string, s ast.Stmt) ast.Stmt {
	number := in.site(kind, s)
	return &ast.IfStmt{Cond: &ast.UnaryExpr{Op: token.NOT, X: callOf("mutant", literal(number))}, Body: &ast.BlockStmt{List: []ast.Stmt{s}}}
}

// changesSomething reports whether a call is neither an end of the process, nor an assertion,
// nor the lock of a mutex.
func changesSomething(call *ast.CallExpr) bool {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "assert" {
			return false
		}
	}
	return name != "panic" && !strings.HasPrefix(name, "assert") && !slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, name)
}

// functions rewrites the bodies of functions inside of a node.
func (in *instrumenter) functions(n ast.Node) {
	if n == nil {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncLit); ok {
			in.block(f.Body)
			return false
		}
		return true
	})
}

// mentionsConstant reports whether a condition depends on the build: on assert.Enabled.
func mentionsConstant(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		name, ok := n.(*ast.Ident)
		found = found || ok && name.Name == "assert"
		return !found
	})
	return found
}

func allBlank(list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool {
		name, ok := e.(*ast.Ident)
		return !ok || name.Name != "_"
	})
}
