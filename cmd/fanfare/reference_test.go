package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the generated documents anew")

// fresh holds a generated document against the file that has it.
func fresh(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%s is stale (%v): write it anew with -update", path, err)
	}
}

// reference is docs/reference/cli.md: every command with its flags and examples.
func reference(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Commands

<!-- Written from the commands: go test ./cmd/fanfare -run TestCommandReferenceIsFresh -update -->

Commands that talk to a server find a local one and its admin key by themselves; --server and FANFARE_KEY name another one.

A flag is stronger than the variable of the same name: --server than FANFARE_SERVER, --data-dir than FANFARE_DATA_DIR, and both --key and
the admin.key of --data-dir than FANFARE_KEY. A command is refused, with exit code 1, where a flag and another variable may mean different
servers or data: --data-dir (or `+"`migrate --from DIR`"+`) beside FANFARE_SERVER, and --server beside FANFARE_DATA_DIR where the key would come from there.
Give both flags, or unset the variable. Commands that work on a data directory of this machine and ask no server (serve, demo, doctor,
config check, restore, `+"`backup --stopped`"+`, and migrate with --dry-run, --compare or --unmark) take no --server.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed, or the command line was wrong |
| 2 | done but for some members: bad lines, failed deliveries |
| 3 | the server cannot be reached |
| 4 | the server refused the key |

Tables fit the terminal; elsewhere (a pipe, a file) nothing is cut, and the columns are the same for every
reader. NO_COLOR takes the colours away, COLUMNS sets the width. Where a command prints a list or a thing,
--json prints what the API answered.

Completion for a shell: `+"`source <(fanfare completion bash)`"+` (or zsh, fish, powershell). Names of topics, templates, channels
and services come from the running server.

## Flags of every command

%s
`, flagsTable(root.PersistentFlags()))
	commands(&b, root)
	return b.String()
}

func commands(b *strings.Builder, parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if c.Runnable() {
			text := c.Long
			if text == "" {
				text = c.Short + "."
			}
			fmt.Fprintf(b, "\n## %s\n\n%s\n\n```sh\n%s\n```\n", c.CommandPath(), strings.TrimSpace(escaped(text)), c.UseLine())
			if c.Example != "" {
				fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindent(c.Example))
			}
			if flags := flagsTable(c.LocalNonPersistentFlags()); flags != "" {
				fmt.Fprintf(b, "\n%s\n", flags)
			}
		}
		commands(b, c)
	}
}

func unindent(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

// escaped keeps Markdown from taking signs of templates and paths for its own.
func escaped(text string) string {
	return strings.NewReplacer("<", "&lt;", "{{", "{&#123;", "*", `\*`).Replace(text)
}

func flagsTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if b.Len() == 0 {
			b.WriteString("| flag | default | |\n|---|---|---|\n")
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		preset := f.DefValue
		if preset == "[]" || preset == "false" || preset == "0" || preset == "0s" {
			preset = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, escaped(preset), strings.ReplaceAll(escaped(f.Usage), "|", `\|`))
	})
	return strings.TrimRight(b.String(), "\n")
}

func TestCommandReferenceIsFresh(t *testing.T) {
	c := &cli{lookupEnv: func(string) (string, bool) { return "", false }}
	fresh(t, "../../docs/reference/cli.md", reference(c.root()))
}

func TestHelpFitsATerminal(t *testing.T) {
	c := &cli{lookupEnv: func(string) (string, bool) { return "", false }}
	var visit func(command *cobra.Command)
	visit = func(command *cobra.Command) {
		for n, line := range strings.Split(command.Long, "\n") {
			if terminal.Columns(line) > 90 {
				t.Errorf("%s: line %d of the help has %d columns", command.CommandPath(), n+1, terminal.Columns(line))
			}
		}
		for _, sub := range command.Commands() {
			visit(sub)
		}
	}
	visit(c.root())
}

// TestTablesFitTheScreen writes the same rows for several screens.
func TestTablesFitTheScreen(t *testing.T) {
	var out bytes.Buffer
	for _, width := range []int{0, 80, 48} {
		fmt.Fprintf(&out, "--- %d\n", width)
		tb := terminal.NewTable(&out, width)
		fmt.Fprintln(tb, "ID\tTOPIC\tFILTER\tLAST ERROR")
		fmt.Fprintln(tb, "sub-1c00004e\tearthquakes\tevent.mag >= 4.5 && contains_ci(event.place, 'alaska')\tcannot connect to mx.example.org:25: connection refused")
		fmt.Fprintln(tb, "地震\t\t\t")
		fmt.Fprintln(tb, "short\trow")
		tb.Flush()
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if strings.HasSuffix(line, " ") {
			t.Errorf("%q ends in space", line)
		}
	}
	parts := strings.Split(out.String(), "--- ")
	for i, most := range []int{0, 1000, 80, 48} {
		for line := range strings.SplitSeq(parts[i], "\n") {
			if terminal.Columns(line) > most {
				t.Errorf("%d columns of %d: %s", terminal.Columns(line), most, line)
			}
		}
	}
	fresh(t, "testdata/tables.golden", out.String())
}

func TestTextIsBrokenBetweenWords(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"a bc def", 0, "a bc def"}, {"a bc def", 4, "a bc|def"}, {"a bc def", 8, "a bc def"}, {"abcdefgh ij", 3, "abc|def|gh|ij"}, {"", 5, ""},
		{"地震 地震", 4, "地震|地震"}, {"地", 1, "地"},
	} {
		if got := strings.Join(terminal.Wrap(test.text, test.width), "|"); got != test.want {
			t.Errorf("%q in %d is %q, not %q", test.text, test.width, got, test.want)
		}
	}
}

func TestColoursAreForTerminalsThatWantThem(t *testing.T) {
	if got := (terminal.Screen{}).Paint(terminal.Red, "x"); got != "x" {
		t.Errorf("%q", got)
	}
	if got := (terminal.Screen{Colours: true}).Paint(terminal.Red, "x"); got != "\x1b[31mx\x1b[0m" || terminal.Columns(got) != 1 {
		t.Errorf("%q", got)
	}
}
