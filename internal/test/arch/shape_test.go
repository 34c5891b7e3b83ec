package arch

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"testing"
)

const (
	maxLines  = 800 // a defect above
	manyLines = 400 // listed above
)

func tooLong(f *file) []finding {
	if !f.isGo() || f.lines() <= maxLines {
		return nil
	}
	return []finding{{f.path, maxLines, fmt.Sprintf("%d lines, more than %d", f.lines(), maxLines),
		"a file holds one idea", "find the second idea and give it a file"}}
}

func TestNoFileIsTooLong(t *testing.T) {
	check(t, tooLong)

	var sizes []int
	for _, f := range load(t) {
		if !f.isGo() {
			continue
		}
		sizes = append(sizes, f.lines())
		if f.lines() > manyLines && f.lines() <= maxLines {
			t.Logf("long: %s, %d lines", f.path, f.lines())
		}
	}
	slices.Sort(sizes)
	t.Logf("%d Go files, median %d lines, nine in ten under %d, longest %d",
		len(sizes), sizes[len(sizes)/2], sizes[len(sizes)*9/10], sizes[len(sizes)-1])
}

func formatted(f *file) []finding {
	if !f.isGo() {
		return nil
	}
	want, err := format.Source([]byte(f.text))
	if err != nil || bytes.Equal(want, []byte(f.text)) {
		return nil // a file that does not parse is reported by load
	}
	line := 1
	for i := range min(len(want), len(f.text)) {
		if want[i] != f.text[i] {
			break
		}
		if want[i] == '\n' {
			line++
		}
	}
	return []finding{{f.path, line, "not formatted", "layout is nobody's opinion", "run make fmt"}}
}

func TestSourcesAreFormatted(t *testing.T) { check(t, formatted) }

// packageComments finds packages that do not say what they are.
func packageComments(files []*file) []finding {
	explained, first := map[string]bool{}, map[string]*file{}
	for _, f := range files {
		if !f.isGo() {
			continue
		}
		if _, seen := first[f.dir()]; !seen {
			first[f.dir()] = f
		}
		if f.ast.Doc != nil {
			explained[f.dir()] = true
		}
	}
	var found []finding
	for dir, f := range first {
		if !explained[dir] {
			found = append(found, finding{f.path, f.line(f.ast.Package), "package " + dir + " has no comment",
				"a reader meets a package by its comment: what it keeps, what happens when it fails", "write it in doc.go"})
		}
	}
	return found
}

func TestEveryPackageSaysWhatItIs(t *testing.T) { report(t, packageComments(load(t))) }
