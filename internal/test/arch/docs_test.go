package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testWord   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)`")
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)\(`)
	makeWord   = regexp.MustCompile("(?:^|`|    )make ([a-z][a-z-]*)")
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	listedPage = regexp.MustCompile(`(?m)^- \[[^\]]*\]\(([^)#:]+)\)`)
	link       = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// first returns the first groups of all matches of a pattern.
func first(pattern *regexp.Regexp, text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		found[match[1]] = true
	}
	return found
}

// A names rule holds that what documents name is there.
func named(what string, pattern *regexp.Regexp, exists func(f *file, name string) bool) rule {
	return func(f *file) []finding {
		if !strings.HasSuffix(f.path, ".md") {
			return nil
		}
		var found []finding
		for i, line := range strings.Split(f.text, "\n") {
			for name := range first(pattern, line) {
				if !exists(f, name) {
					found = append(found, finding{f.path, i + 1, "no " + what + " " + name,
						"a document that names what is not there tells an untruth", "correct the name, or say that it is absent"})
				}
			}
		}
		return found
	}
}

func TestDocumentsNameTestsThatExist(t *testing.T) {
	tests := map[string]bool{}
	for _, f := range load(t) {
		if f.isTest() {
			for name := range first(testFunc, f.text) {
				tests[name] = true
			}
		}
	}
	check(t, named("test", testWord, func(_ *file, name string) bool { return tests[name] }))
}

func TestDocumentsNameTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := first(makeTarget, string(makefile))
	check(t, named("target in the Makefile", makeWord, func(_ *file, name string) bool { return targets[name] }))
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	check(t, named("file", link, func(f *file, name string) bool {
		_, err := os.Stat(filepath.Join("..", "..", "..", path.Join(f.dir(), name)))
		return err == nil
	}))
}

// The API takes no forms: curl's -d says that it sends one where nothing else is said.
func TestCurlInDocumentsSaysWhatItSends(t *testing.T) {
	check(t, func(f *file) (found []finding) {
		if !strings.HasSuffix(f.path, ".md") {
			return nil
		}
		lines := strings.Split(f.text, "\n")
		for i, line := range lines {
			if !strings.HasPrefix(strings.TrimSpace(line), "curl ") {
				continue
			}
			command := line
			for _, next := range lines[i+1:] {
				if strings.TrimSpace(next) == "" || strings.HasPrefix(next, "```") || strings.HasPrefix(strings.TrimSpace(next), "curl ") {
					break
				}
				command += "\n" + next
			}
			if strings.Contains(command, " -d ") && !strings.Contains(command, "Content-Type") {
				found = append(found, finding{f.path, i + 1, "curl -d without a Content-Type", "the API refuses forms, and who copies the line meets an error", "write --json"})
			}
		}
		return found
	})
}

// The site's navigation is made of the lists in its index pages.
func TestPagesOfTheDocumentsAreListed(t *testing.T) {
	listed := map[string]bool{"docs/index.md": true}
	for _, f := range load(t) {
		if strings.HasPrefix(f.path, "docs/") && path.Base(f.path) == "index.md" {
			for name := range first(listedPage, f.text) {
				listed[path.Join(f.dir(), name)] = true
			}
		}
	}
	check(t, func(f *file) []finding {
		if !strings.HasPrefix(f.path, "docs/") || !strings.HasSuffix(f.path, ".md") || listed[f.path] {
			return nil
		}
		return []finding{{f.path, 1, "no index page lists it", "nobody finds it on the site, and the site is not built without it",
			"add a line - [Title](" + f.path + ") to docs/tutorial, how-to, reference or explanation/index.md, of a decision to docs/decisions/index.md"}}
	})
}
