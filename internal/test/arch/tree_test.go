package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "fanfare.dev/fanfare"

// A file is one text of the project.
type file struct {
	path string // from the root, with slashes
	text string

	// Of Go sources only.
	fset *token.FileSet
	ast  *ast.File
}

// dir is the folder, "." for the root.
func (f *file) dir() string { return path.Dir(f.path) }

// isGo reports whether the file was parsed.
func (f *file) isGo() bool { return f.ast != nil }

// isTest reports whether the file is compiled for tests only.
func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// line is the line of pos.
func (f *file) line(pos token.Pos) int { return f.fset.Position(pos).Line }

// lines is the number of lines.
func (f *file) lines() int { return strings.Count(f.text, "\n") }

// parse makes a file of its text, Go or not.
func parse(name, text string) (*file, error) {
	f := &file{path: name, text: text}
	if !strings.HasSuffix(name, ".go") {
		return f, nil
	}
	f.fset = token.NewFileSet()
	var err error
	f.ast, err = parser.ParseFile(f.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return f, err
}

// texts are the endings, or whole names, of files that people write.
var texts = []string{
	".go", ".sql", ".md", ".yaml", ".yml", ".json", ".sh", ".tmpl", ".html", ".txt",
	"go.mod", "Makefile", "LICENSE", ".gitignore", ".editorconfig", ".ci/run", ".ci/peers",
}

// project reads all texts below the root of the module, once.
var project = sync.OnceValues(func() ([]*file, error) {
	root := filepath.Join("..", "..", "..")
	var files []*file
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			if rel != "." && foreign(rel) {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.ContainsFunc(texts, func(end string) bool { return strings.HasSuffix(rel, end) }) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parse(rel, string(text))
		files = append(files, f)
		return err
	})
	return files, err
})

// foreign folders hold nothing that the project wrote: what git keeps, what was
// built, what a server or a test left. They are those of .gitignore.
func foreign(dir string) bool {
	name := path.Base(dir)
	return name != ".ci" && strings.HasPrefix(name, ".") || name == "node_modules" || dir == "bin" || dir == "build" || dir == "fanfare-data"
}

// load is project for a test.
func load(t *testing.T) []*file {
	t.Helper()
	files, err := project()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files found: the walk has lost the tree", len(files))
	}
	return files
}
