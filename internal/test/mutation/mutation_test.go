package mutation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `package p

func (w *accessPath) takeRange(x, y int, ok bool) bool {
	if x < y && ok {
		w.n = 3
		w.insert(x)
		return false
	}
	for i := range 3 {
		w.n += i
	}
	return !ok || x >= y
}
`

// TestSitesAreFoundBySyntax names what can be changed in a function.
func TestSitesAreFoundBySyntax(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "p")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sample.go"), sample)
	overlay, sites, err := Instrument([]string{dir}, func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range sites {
		names = append(names, s.Name()+": "+s.Code)
	}
	want := `p.accessPath.takeRange condition 1: x < y && ok
p.accessPath.takeRange condition 2: x < y
p.accessPath.takeRange comparison 1: x < y
p.accessPath.takeRange condition 3: ok
p.accessPath.takeRange assignment 1: w.n = 3
p.accessPath.takeRange call 1: w.insert(x)
p.accessPath.takeRange condition 4: false
p.accessPath.takeRange assignment 2: w.n += i
p.accessPath.takeRange condition 5: !ok || x >= y
p.accessPath.takeRange condition 6: !ok
p.accessPath.takeRange condition 7: x >= y
p.accessPath.takeRange comparison 2: x >= y`
	if got := strings.Join(names, "\n"); got != want {
		t.Errorf("sites are\n%s\nwant\n%s", got, want)
	}
	text := string(overlay[filepath.Join(dir, "sample.go")])
	for _, part := range []string{"if mutateCondition(1, mutateCondition(2, (mutant(3) && x <= y || !mutant(3) && x < y)) && mutateCondition(4, ok))", "if !mutant(5) {"} {
		if !strings.Contains(text, part) {
			t.Errorf("the changed source lacks %s:\n%s", part, text)
		}
	}
}

// TestEachNameOfASiteIsGivenOnce reads the sources of the index as they are.
func TestEachNameOfASiteIsGivenOnce(t *testing.T) {
	_, sites, err := Instrument(folders(filepath.Join("..", "..", "..")), skipped)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range sites {
		if seen[s.Name()] {
			t.Errorf("two sites are named %s", s.Name())
		}
		seen[s.Name()] = true
	}
	if len(sites) < 1000 {
		t.Errorf("only %d sites", len(sites))
	}
	for _, name := range planted {
		if !seen[name] {
			t.Errorf("the planted mutant %s is not there: where did it go?", name)
		}
	}
}
