package imap_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/imap"
)

var update = flag.Bool("update", false, "write the responses of the server into the scripts")

// TestDialoguesAreAsTheRFCsSay runs the scripts in testdata. Their names and comments say which sections they show. A line "C1: NOOP" sends
// a command in connection 1, and the lines "S1: ..." after it are all responses; the tagged one comes last and has no tag. Each connection logs in
// first, with the account of the number before the dot in "C2.1: NOOP"; the default is account 1. The texts for people after response codes
// are not compared.
func TestDialoguesAreAsTheRFCsSay(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.imap")
	must(t, err)
	if len(scripts) < 10 {
		t.Fatalf("only %d scripts", len(scripts))
	}
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".imap"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(path)
			must(t, err)
			w := newWorld(t, func(o *imap.Options) { o.Limits.MaxMessageBytes = 10_000 })
			got := w.play(string(raw))
			switch {
			case got == string(raw):
			case *update:
				must(t, os.WriteFile(path, []byte(got), 0o644))
			default:
				t.Errorf("the responses differ:\n%s", difference(string(raw), got))
			}
		})
	}
}

// play runs a script, and returns it with the responses of the server.
func (w *world) play(script string) string {
	clients := map[string]*client{}
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "S") {
			continue
		}
		out.WriteString(line + "\n")
		who, command, isCommand := strings.Cut(line, ": ")
		if !isCommand || !strings.HasPrefix(who, "C") {
			continue
		}
		name := who[1:]
		if clients[name] == nil {
			account := 1
			if n, _, has := strings.Cut(name, "."); has {
				account, _ = strconv.Atoi(n)
			}
			clients[name] = w.login(account)
		}
		untagged, answer := clients[name].command("%s", command)
		for _, response := range append(untagged, answer) {
			out.WriteString("S" + name + ": " + readable(response) + "\n")
		}
	}
	return out.String()
}

// readable removes the text for people from a status response, and shows line ends in literals.
func readable(response string) string {
	prefix, rest := "", response
	if after, is := strings.CutPrefix(rest, "* "); is {
		prefix, rest = "* ", after
	}
	kind, text, _ := strings.Cut(rest, " ")
	switch kind {
	case "OK", "NO", "BAD", "BYE":
		response = prefix + kind
		if code, _, has := strings.Cut(text, "] "); has && strings.HasPrefix(text, "[") {
			response += " " + code + "]"
		}
	}
	return strings.ReplaceAll(response, "\r\n", `\r\n`)
}

// difference returns the lines around the first difference.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "after " + strings.Join(a[max(0, i-3):i], "\n      ") + "\nwant  " + a[i] + "\ngot   " + b[i]
		}
	}
	return "one of them is longer"
}
