package mutation

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// explanations say why mutants survive: the class by the site's name and code, or by its
// function.
type explanations struct {
	sites, functions map[string]string
}

var (
	explainedSite     = regexp.MustCompile("^- `([^`]+ (?:condition|comparison|assignment|call) [0-9]+)`: (.+)$")
	explainedFunction = regexp.MustCompile("^- all of `([^`]+)`$")
)

// explained reads survivors.md. A class is a heading, and its members are the items below.
func explained(t *testing.T) explanations {
	t.Helper()
	text, err := os.ReadFile("survivors.md")
	if err != nil {
		t.Fatal(err)
	}
	e := explanations{map[string]string{}, map[string]string{}}
	class := ""
	for i, line := range strings.Split(string(text), "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			class = heading
		} else if m := explainedSite.FindStringSubmatch(line); m != nil {
			e.sites[m[1]+": "+m[2]] = class
		} else if m := explainedFunction.FindStringSubmatch(line); m != nil {
			e.functions[m[1]] = class
		} else if strings.HasPrefix(line, "- ") {
			t.Errorf("survivors.md:%d: neither a site nor a function: %s", i+1, line)
		}
	}
	return e
}

// of is the class that explains a site, "" where none does.
func (e *explanations) of(s *Site) string {
	if class := e.functions[s.Function]; class != "" {
		return class
	}
	return e.sites[s.Name()+": "+s.Code]
}

// TestExplanationsAreOfSitesThatAreThere fails for an explanation of code that was changed
// since.
func TestExplanationsAreOfSitesThatAreThere(t *testing.T) {
	_, sites, err := Instrument(folders(filepath.Join("..", "..", "..")), skipped)
	if err != nil {
		t.Fatal(err)
	}
	there, functions := map[string]bool{}, map[string]bool{}
	for _, s := range sites {
		there[s.Name()+": "+s.Code] = true
		functions[s.Function] = true
	}
	e := explained(t)
	for site := range e.sites {
		if !there[site] {
			t.Errorf("survivors.md explains what is not there: %s", site)
		}
	}
	for f := range e.functions {
		if !functions[f] {
			t.Errorf("survivors.md explains a function that is not there: %s", f)
		}
	}
}
