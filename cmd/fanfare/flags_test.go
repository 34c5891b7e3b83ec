package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	flagWord = regexp.MustCompile("^[(\\[`'\"]*--([a-z][a-z0-9-]*)")
	// endsCommand is where the arguments of a command end in a text.
	endsCommand = regexp.MustCompile("[|;&,.:)`'\"]$|^[|;&]+$")
)

// A named flag is one that a text says a command has.
type namedFlag struct {
	command *cobra.Command // nil: the text does not say of which
	name    string
}

// flagsIn finds the flags in a text: those behind a command are that command's, others
// those of own.
func flagsIn(root, own *cobra.Command, text string) (found []namedFlag) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		current := own
		words := strings.Fields(line)
		for i := 0; i < len(words); i++ {
			word := strings.Trim(words[i], "`'\"($")
			if word == "fanfare" || strings.HasSuffix(word, "/bin/fanfare") {
				current = root
				for i+1 < len(words) {
					next := strings.Trim(words[i+1], "`'\",.;:)")
					sub, _, err := current.Find([]string{next})
					if err != nil || sub == current || endsCommand.MatchString(words[i]) {
						break
					}
					current = sub
					i++
				}
			} else if m := flagWord.FindStringSubmatch(words[i]); m != nil {
				found = append(found, namedFlag{current, m[1]})
			}
			if current != own && endsCommand.MatchString(words[i]) {
				current = own
			}
		}
	}
	return found
}

func hasFlag(command *cobra.Command, name string) bool {
	return command.Flags().Lookup(name) != nil || command.InheritedFlags().Lookup(name) != nil || command.PersistentFlags().Lookup(name) != nil || name == "help"
}

// anywhere tells whether any command has a flag.
func anywhere(command *cobra.Command, name string) bool {
	if hasFlag(command, name) {
		return true
	}
	for _, sub := range command.Commands() {
		if anywhere(sub, name) {
			return true
		}
	}
	return false
}

func commandTree() *cobra.Command {
	c := &cli{lookupEnv: func(string) (string, bool) { return "", false }}
	return c.root()
}

func TestEveryFlagThatHelpNamesExists(t *testing.T) {
	root := commandTree()
	seen := 0
	var visit func(command *cobra.Command)
	visit = func(command *cobra.Command) {
		texts := []string{command.Use, command.Short, command.Long, command.Example}
		command.Flags().VisitAll(func(f *pflag.Flag) { texts = append(texts, f.Usage) })
		for _, f := range flagsIn(root, command, strings.Join(texts, "\n")) {
			exists := hasFlag(f.command, f.name)
			if f.command.HasSubCommands() && !f.command.Runnable() { // it speaks of the flags of its commands
				exists = anywhere(f.command, f.name)
			}
			if seen++; !exists {
				t.Errorf("the help of %s names --%s, which %s does not have", command.CommandPath(), f.name, f.command.CommandPath())
			}
		}
		for _, sub := range command.Commands() {
			visit(sub)
		}
	}
	visit(root)
	if seen < 150 {
		t.Errorf("%d flags were found in all the help", seen)
	}
}

var (
	codeSpan = regexp.MustCompile("`[^`\n]+`")
)

func TestEveryFlagThatDocumentsNameExists(t *testing.T) {
	root := commandTree()
	seen := 0
	check := func(path string, b []byte) {
		text := string(b)
		for _, f := range flagsIn(root, nil, text) {
			if f.command == nil {
				continue
			}
			if seen++; !hasFlag(f.command, f.name) {
				t.Errorf("%s names --%s, which %s does not have", path, f.name, f.command.CommandPath())
			}
		}
		for _, span := range codeSpan.FindAllString(text, -1) {
			if m := flagWord.FindStringSubmatch(span); m != nil && !anywhere(root, m[1]) {
				t.Errorf("%s names %s, which no command has", path, span)
			}
		}
	}
	for _, folder := range []string{"README.md", "docs", "examples"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".md") {
				return err
			}
			b, err := os.ReadFile(path)
			check(path, b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 200 {
		t.Errorf("%d flags were found in all documents", seen)
	}
}

// A test that finds nothing in a text would hold for any text.
func TestFlagsAreFoundInTexts(t *testing.T) {
	root := commandTree()
	backup, _, err := root.Find([]string{"backup"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"the database that --nothing names":                   "fanfare backup --nothing",
		"fanfare cancel --nothing EVENT.":                     "fanfare cancel --nothing",
		"FANFARE_KEY=x ./bin/fanfare template lint --nothing": "fanfare template lint --nothing",
		"`fanfare restore --list`, then --nothing":            "fanfare backup --nothing",
		"fanfare backup - | gpg --encrypt":                    "fanfare backup --encrypt",
	} {
		last := ""
		for _, f := range flagsIn(root, backup, text) {
			last = f.command.CommandPath() + " --" + f.name
		}
		if last != want {
			t.Errorf("%q has %q, want %q", text, last, want)
		}
	}
}
