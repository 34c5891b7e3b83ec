package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A page is a document that is followed as by hand: its shell blocks, one after the
// other, in an empty folder that has the program as bin/fanfare.
type page struct {
	document string // from the root of the module
	from, to string // headings between which the blocks stand; "": all of it
	file     string // what the YAML block is saved as
	earlier  string // another document that the server has by then; "": none
}

var (
	fenced   = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	indented = regexp.MustCompile(`(?m)(?:^    .*\n)+`)
)

// script makes one program of the blocks, and returns the YAML.
func (p page) script(t *testing.T) (shell, document string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", p.document))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if p.from != "" {
		_, rest, found := strings.Cut(text, p.from)
		part, _, ended := strings.Cut(rest, p.to)
		if !found || !ended {
			t.Fatalf("%s has no part from %q to %q", p.document, p.from, p.to)
		}
		text = part
	}
	// Fences become indented blocks, so that all stand in their order.
	text = fenced.ReplaceAllStringFunc(text, func(block string) string {
		m := fenced.FindStringSubmatch(block)
		if m[1] == "yaml" {
			document += m[2]
			return ""
		}
		return "    " + strings.ReplaceAll(strings.TrimSuffix(m[2], "\n"), "\n", "\n    ")
	})
	for _, block := range indented.FindAllString(text+"\n", -1) {
		for line := range strings.Lines(block) {
			shell += strings.TrimPrefix(line, "    ")
		}
	}
	return shell, document
}

// follow runs the document on free ports, as somebody who types would: a program
// that was started is there when the next line comes. It returns what was printed.
func (p page) follow(t *testing.T) string {
	t.Helper()
	shell, document := p.script(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(dir, "bin", "fanfare")); err != nil {
		t.Fatal(err)
	}
	mail, api := pgtest.Address(t), pgtest.Address(t)
	onFreePorts := strings.NewReplacer("127.0.0.1:2525", mail, "127.0.0.1:8085", api).Replace
	if err := os.WriteFile(filepath.Join(dir, p.file), []byte(onFreePorts(document)), 0o600); err != nil {
		t.Fatal(err)
	}
	if p.earlier != "" {
		if err := os.WriteFile(filepath.Join(dir, "earlier.yaml"), []byte(p.earlier), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const built = "make build\n" // the program under test is there
	shell = strings.Replace(shell, built, "", 1)
	for started, address := range map[string]string{"./bin/fanfare sink --smtp 127.0.0.1:2525 --show 10 &\n": mail, "./bin/fanfare serve &\n": api} {
		if strings.Count(shell, started) != 1 {
			t.Fatalf("%s does not start %q once:\n%s", p.document, started, shell)
		}
		host, port, _ := net.SplitHostPort(address)
		waits := fmt.Sprintf("until (exec 3<>/dev/tcp/%s/%s) 2>/dev/null; do sleep 0.05; done\n", host, port)
		if strings.Contains(started, "serve") {
			waits = fmt.Sprintf("until curl -sf http://%s/readyz >/dev/null; do sleep 0.05; done\n", address)
			if p.earlier != "" {
				waits += "./bin/fanfare apply -f earlier.yaml\n"
			}
		}
		shell = strings.Replace(shell, started, started+waits, 1)
	}
	// A person types slower than the mail is sent.
	const looks = "./bin/fanfare trace"
	shell = strings.Replace(shell, looks, "until ./bin/fanfare trace --subscriber ada@example.com | grep -q accepted; do sleep 0.05; done\n"+looks, 1)
	program := "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n" + onFreePorts(shell)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", program)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "FANFARE_LISTEN="+api, "FANFARE_SERVER=http://"+api, "FANFARE_DURABILITY=relaxed", "FANFARE_DISK_FLOOR=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n---- the program was\n%s", p.document, err, out, program)
	}
	return string(out)
}

func TestReadmeLeadsToAMail(t *testing.T) {
	t.Parallel()
	said := page{document: "README.md", from: "\n## Your first topic, in five minutes\n", to: "\n## ", file: "load.yaml"}.follow(t)
	for _, want := range []string{"topic", `"created":true`, `"duplicate":false`, "ada@example.com", "accepted", "250 "} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not in what it printed:\n%s", want, said)
		}
	}
}

// The tutorial continues on the server of the README.
func TestTutorialSaysWhatHappens(t *testing.T) {
	t.Parallel()
	said := page{document: "docs/tutorial/first-topic.md", file: "weather.yaml", earlier: "service: ops\n"}.follow(t)
	for _, want := range []string{
		`"created":true`, "did you mean", // subscriptions, and the one with a mistake
		`"duplicate":false`, "completed", "1 accepted", "250 ", // the event, its trace, its mail
		"event.place == ", "Lerwick", // why Bo got none
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not in what it printed:\n%s", want, said)
		}
	}
}
