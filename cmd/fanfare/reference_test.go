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

By default, commands connect to the server on this machine and use its admin key. To use another server, set `+"`--server`"+` and FANFARE_KEY.

A flag takes precedence over the environment variable of the same name: `+"`--server`"+` over FANFARE_SERVER, and `+"`--data-dir`"+` over FANFARE_DATA_DIR.
Both `+"`--key`"+` and the admin.key in `+"`--data-dir`"+` take precedence over FANFARE_KEY. If a flag and a different variable could refer to different servers
or data, the command fails with exit code 1. This applies to `+"`--data-dir`"+` (or `+"`migrate --from DIR`"+`) together with FANFARE_SERVER, and to `+"`--server`"+`
together with FANFARE_DATA_DIR if the key would be read from that directory. To fix this, pass both flags or unset the variable.
Commands that work on a local data directory and do not connect to a server do not accept `+"`--server`"+`: serve, demo, doctor, config check,
restore, `+"`backup --stopped`"+`, and migrate with `+"`--dry-run`, `--compare` or `--unmark`"+`.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | failure, or an invalid command line |
| 2 | partial success: some lines were rejected, or some deliveries failed |
| 3 | the server cannot be reached |
| 4 | the server rejected the API key |

In a terminal, tables are cut to its width. In a pipe or a file, tables are never cut and always have the same columns. NO_COLOR turns
colors off, and COLUMNS sets the width. For commands that print objects or lists, `+"`--json`"+` prints the response of the API.

To enable shell completion, run `+"`source <(fanfare completion bash)`"+` (or zsh, fish, powershell). It completes the names of topics, templates,
channels and services from the running server.

## Flags of all commands

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
