package docexamples

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the module.
const root = "../../.."

// A block is an example on a page: what stands between two fences, or an indented
// run of lines after an empty one.
type block struct {
	page     string // path from the root of the module
	line     int    // of its first line of text
	language string
	text     string
	section  string // the heading above it
	first    bool   // of its section
}

// Languages of blocks. A fence names its language; other blocks are recognised by their first
// line.
const (
	shell         = "sh"
	documentBlock = "yaml"
	values        = "json"
	markup        = "html"
	template      = "liquid"
	filters       = "cel"
	plain         = "text"
)

var (
	fence   = regexp.MustCompile("^( *)```([a-z]*)$")
	command = regexp.MustCompile(`^(\$ |\(?([A-Z_]+=\S* )*(\./bin/)?(fanfare|curl|echo|make|npm|pip|python3|export|umask|cat|ask|key=)\b)`)
)

// languageOf tells what a block without a language is.
func languageOf(text string) string {
	switch {
	case command.MatchString(text):
		return shell
	case strings.Contains(text, "{%"), strings.Contains(text, "{{"):
		return template
	case strings.HasPrefix(text, `{"`), strings.HasPrefix(text, "{\n"):
		return values
	}
	return plain
}

// blocksOf reads the blocks of a page.
func blocksOf(t *testing.T, page string) (list []block) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	section, first := "", true
	add := func(line int, indent, language string, text []string) {
		for i := range text {
			text[i] = strings.TrimPrefix(text[i], indent)
		}
		whole := strings.TrimRight(strings.Join(text, "\n"), "\n") + "\n"
		if language == "" {
			language = languageOf(whole)
		}
		list = append(list, block{page, line, language, whole, section, first})
		first = false
	}
	for i := 0; i < len(lines); i++ {
		if heading, ok := strings.CutPrefix(lines[i], "## "); ok {
			section, first = heading, true
		}
		if m := fence.FindStringSubmatch(lines[i]); m != nil {
			end := i + 1
			for end < len(lines) && lines[end] != m[1]+"```" {
				end++
			}
			if end == len(lines) {
				t.Fatalf("%s:%d: the fence has no end", page, i+1)
			}
			add(i+2, m[1], m[2], slices.Clone(lines[i+1:end]))
			i = end
			continue
		}
		if !strings.HasPrefix(lines[i], "    ") || i == 0 || lines[i-1] != "" {
			continue
		}
		end := i
		for end < len(lines) && (strings.HasPrefix(lines[end], "    ") || lines[end] == "" && end+1 < len(lines) && strings.HasPrefix(lines[end+1], "    ")) {
			end++
		}
		indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " "))]
		add(i+1, indent, "", slices.Clone(lines[i:end]))
		i = end - 1
	}
	return list
}

// pagesWithExamples are the pages that have blocks, in their order.
func pagesWithExamples(t *testing.T) (pages []string) {
	t.Helper()
	for _, folder := range []string{"README.md", "docs", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".md") {
				page, _ := filepath.Rel(root, path)
				if len(blocksOf(t, page)) > 0 {
					pages = append(pages, page)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

// An exception is a block that is not run, or several of one language.
type exception struct {
	page     string
	language string // of all blocks that it is about; "": of that which starts so
	starts   string
	command  string // or a line of a block, from its beginning, whose other lines are run
	reason   string
}

func (e exception) is(b *block) bool {
	return e.command == "" && e.page == b.page && (e.language == "" || e.language == b.language) && strings.HasPrefix(b.text, e.starts)
}

// excepted is the reason why a block is not run, "" for one that is.
func excepted(b *block) string {
	if b.page == commandReference && b.first {
		return "the form of the command: generated from it"
	}
	for _, e := range exceptions {
		if e.is(b) {
			return e.reason
		}
	}
	return ""
}

// withoutExceptions is what a block has people type, but for single lines.
func withoutExceptions(b *block) string {
	var kept strings.Builder
	for line := range strings.Lines(b.text) {
		if !slices.ContainsFunc(exceptions, func(e exception) bool {
			return e.page == b.page && e.command != "" && strings.HasPrefix(line, e.command)
		}) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// An exception whose block is gone would hide the next one that begins alike.
func TestEachExceptionIsABlockOfItsPage(t *testing.T) {
	for _, e := range exceptions {
		fits := 0
		if _, err := os.Stat(filepath.Join(root, e.page)); err == nil {
			for _, b := range blocksOf(t, e.page) {
				if b.page == commandReference && b.first {
					continue
				}
				if e.is(&b) || e.command != "" && withoutExceptions(&b) != b.text && strings.Contains("\n"+b.text, "\n"+e.command) {
					fits++
				}
			}
		}
		switch {
		case fits == 0:
			t.Errorf("%s has no block that starts with %q: take the exception away", e.page, e.starts+e.command)
		case fits > 1 && e.language == "" && e.command == "":
			t.Errorf("%s has %d blocks that start with %q: write more of the one that is meant", e.page, fits, e.starts)
		case e.reason == "":
			t.Errorf("%s, %q: it is not said why the block is not run", e.page, e.starts)
		}
	}
}
