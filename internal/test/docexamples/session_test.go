package docexamples

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// patience is how long a block may take. It decides only how long a failure takes.
const patience = time.Minute

// binary is the program under test, built once for all pages.
var binary string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fanfare-docexamples-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "fanfare")
	build := exec.Command("go", "build", "-o", binary, "../../../cmd/fanfare")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the program cannot be built:", err)
		return 1
	}
	return m.Run()
}

// A session is a shell in a folder of its own, in which the blocks of a page run one
// after the other and see each other's variables.
type session struct {
	t      *testing.T
	dir    string
	api    string // address of the page's server
	mail   string // address of its capture server
	second string // address of another server that the page starts

	stdin io.WriteCloser
	ended chan string // the status of a block
	gone  chan struct{}
	mu    sync.Mutex
	said  bytes.Buffer
	count int
}

const endOfBlock = "end of block "

// prelude is what every page begins with: commands of the program that would go on
// for good end when they have said the first thing, curl fails where the server
// refuses, and every command that fails is noted.
const prelude = `
set -E -o pipefail
trap 'note "$?" "$BASH_COMMAND"' ERR
note() { case $2 in return*|.\ ./.block*|fanfare*|curl*) ;; *) echo "$1: $2" >> .failed ;; esac; }
fanfare() { local c=0; ./bin/fanfare "$@" || c=$?; [ $c = 0 ] || echo "$c: fanfare $*" >> .failed; return $c; }
curl() { local c=0; command curl -sS --fail-with-body "$@" || c=$?; [ $c = 0 ] || echo "$c: curl $*" >> .failed; return $c; }
make() { [ "$1" = build ] || command make "$@"; }
briefly() {
	local said=$1 out pid c=0; shift; [ "$1" != fanfare ] || set -- ./bin/fanfare "${@:2}"
	out=$(mktemp -p .)
	"$@" > $out 2>&1 < /dev/null & pid=$!
	until grep -q "$said" $out; do kill -0 $pid 2> /dev/null || break; sleep 0.05; done
	kill -TERM $pid 2> /dev/null || :
	wait $pid || c=$?
	cat $out
	[ $c = 0 ] || [ $c = 143 ] || echo "$c: $*" >> .failed
}
answers() { until command curl -sf "$1" > /dev/null; do kill -0 "$2" || return 1; sleep 0.05; done; }
accepts() { until (exec 3<> "/dev/tcp/${1%:*}/${1#*:}") 2> /dev/null; do kill -0 "$2" || return 1; sleep 0.05; done; }
`

// open starts a shell with free ports for the page's server and its capture server.
func open(t *testing.T) *session {
	t.Helper()
	s := &session{t: t, dir: t.TempDir(), api: pgtest.Address(t), mail: pgtest.Address(t), second: pgtest.Address(t), ended: make(chan string), gone: make(chan struct{})}
	for _, folder := range []string{"bin", "backup", "etc/fanfare", "var/lib", "tmp"} {
		if err := os.MkdirAll(filepath.Join(s.dir, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(binary, filepath.Join(s.dir, "bin", "fanfare")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "--norc", "-s")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "FANFARE_LISTEN="+s.api, "FANFARE_SERVER=http://"+s.api, "FANFARE_DURABILITY=relaxed", "FANFARE_DISK_FLOOR=0",
		"FANFARE_PUBLIC_URL=https://news.example.org", "HOME="+s.dir)
	if database := pgtest.Chosen(t); database != "" {
		cmd.Env = append(cmd.Env, "FANFARE_DB="+database)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read(out)
	t.Cleanup(func() {
		// Programs that the page left running end with their shell: all are one group.
		end := func(with syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, with) }
		end(syscall.SIGTERM)
		stuck := time.AfterFunc(patience, func() { end(syscall.SIGKILL) })
		<-s.gone
		stuck.Stop()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("what the page printed:\n%s", s.output())
		}
	})
	s.run("prelude", prelude)
	return s
}

func (s *session) read(out io.Reader) {
	defer close(s.gone)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if at := strings.Index(line, endOfBlock); at >= 0 {
			s.write(line[:at])
			select {
			case s.ended <- "":
			case <-s.t.Context().Done(): // nobody waits for it any more
			}
			continue
		}
		s.write(line)
		if err != nil {
			return
		}
	}
}

func (s *session) write(line string) {
	s.mu.Lock()
	s.said.WriteString(line)
	s.mu.Unlock()
}

func (s *session) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

// run has the shell do what the text says, and returns the commands that failed,
// each with its exit code.
func (s *session) run(name, text string) (failed []string) {
	s.t.Helper()
	s.count++
	file := fmt.Sprintf(".block%d", s.count)
	s.file(file, text)
	s.write("---- " + name + "\n" + text)
	fmt.Fprintf(s.stdin, ". ./%s < /dev/null\necho '%s'\n", file, endOfBlock)
	select {
	case <-s.ended:
	case <-s.gone:
		s.t.Fatalf("%s: the shell ended", name)
	case <-time.After(patience):
		s.t.Fatalf("%s: it does not end", name)
	}
	noted := filepath.Join(s.dir, ".failed")
	b, err := os.ReadFile(noted)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.Remove(noted); err != nil {
		s.t.Fatal(err)
	}
	failed = strings.Split(strings.TrimSpace(string(b)), "\n")
	return slices.Compact(failed)
}

// must is run for what the test itself needs.
func (s *session) must(name, text string) {
	s.t.Helper()
	if failed := s.run(name, text); len(failed) > 0 {
		s.t.Fatalf("%s failed:\n%s", name, strings.Join(failed, "\n"))
	}
}

// file writes a file into the folder of the page.
func (s *session) file(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

var (
	paths     = regexp.MustCompile(`(^|[\s="'(:])/(backup|etc/fanfare|etc/ssl|var/lib/fanfare|tmp/drill)`)
	forGood   = regexp.MustCompile(`(?m)^((?:[A-Z_]+=\S+ )*)((?:\./bin/)?fanfare (?:serve|sink|status --watch)\b[^&|\n]*?)( +#.*)?$`)
	demoFiles = regexp.MustCompile(`(?m)^(.*fanfare demo files (\S+).*)$`)
	started   = regexp.MustCompile(`(?m)^(.*fanfare (serve|sink)\b.*)& *(#.*)?$`)
	word      = regexp.MustCompile(`(^|[^$\w-])(EVENT|SUBSCRIPTION|SUBSCRIBER|KEY|FILE)\b`)
)

// here makes of addresses and paths of an example those of the page.
func (s *session) here(text string) string {
	text = strings.NewReplacer("127.0.0.1:2525", s.mail, "127.0.0.1:8085", s.api, "127.0.0.1:18085", s.second).Replace(text)
	return paths.ReplaceAllString(text, "${1}"+s.dir+"/${2}")
}

// typed makes of a block what somebody would type: commands without what they print,
// with ids that are there in the place of those that are shown. Programs that go on
// for good are ended or, with &, waited for.
func (s *session) typed(text string) string {
	if strings.Contains("\n"+text, "\n$ ") {
		var commands []string
		more := false
		for line := range strings.Lines(text) {
			rest, begins := strings.CutPrefix(line, "$ ")
			if begins || more {
				commands = append(commands, rest)
				more = strings.HasSuffix(rest, "\\\n")
			}
		}
		text = strings.Join(commands, "")
	}
	text = forGood.ReplaceAllStringFunc(text, func(line string) string {
		m := forGood.FindStringSubmatch(line)
		said := "."
		switch {
		case strings.Contains(m[2], "fanfare serve"):
			said = "fanfare listens on"
			m[1] += "FANFARE_LISTEN=127.0.0.1:0 "
			if !strings.Contains(m[2], "--data-dir") && !strings.Contains(m[2], "--config") {
				m[2] += " --data-dir another-data"
			}
		case strings.Contains(m[2], "fanfare sink"):
			m[2] = strings.ReplaceAll(m[2], "127.0.0.1:2525", "127.0.0.1:0")
		}
		return m[1] + "briefly '" + said + "' " + m[2]
	})
	text = demoFiles.ReplaceAllString(text, "${1}\nsed -i s/127.0.0.1:[2]525/"+s.mail+"/ ${2}/fanfare.yaml\n")
	text = started.ReplaceAllStringFunc(text, func(line string) string {
		if !strings.Contains(line, "./bin/fanfare") { // without a shell between, which would end alone
			line = strings.Replace(line, "fanfare s", "./bin/fanfare s", 1)
		}
		address := s.mail
		if strings.Contains(line, "fanfare serve") {
			address = s.api
			if _, listen, ok := strings.Cut(line, "--listen "); ok {
				address = strings.Fields(listen)[0]
			}
			return line + "\nanswers http://" + address + "/readyz $!"
		}
		return line + "\naccepts " + address + " $!"
	})
	text = word.ReplaceAllStringFunc(text, func(found string) string {
		m := word.FindStringSubmatch(found)
		if m[2] == "KEY" {
			m[2] = "KEYID"
		}
		return m[1] + "${" + m[2] + "}"
	})
	for _, id := range []struct {
		shown    *regexp.Regexp
		variable string
	}{
		{regexp.MustCompile(`\bevt-\d{8}-\d+\b`), "${EVENT}"}, {regexp.MustCompile(`\bsub-1c00004e\b`), "${SUBSCRIPTION}"},
		{regexp.MustCompile(`\bdlv-\d{8}-\d+-\d+\b`), "${DELIVERY}"}, {regexp.MustCompile(`\bmsg-\d{8}-\d+\b`), "${MESSAGE}"},
		{regexp.MustCompile(`\bkey-[27]\b`), "${KEYID}"}, {regexp.MustCompile(`\bevt-\.\.\.`), "${EVENT}"},
	} {
		text = id.shown.ReplaceAllLiteralString(text, id.variable)
	}
	return s.here(text)
}
