package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// patience is how long a test waits for what must come about. It decides only
// how long a failure takes.
const patience = 3 * time.Minute

// A server is a `fanfare serve` in a process of its own.
type server struct {
	t        *testing.T
	dir      string // of its data, as the test sees it
	database string // its URL; "": files in dir
	args     []string
	env      []string
	disk     *disk  // nil: the machine's
	program  string // "": binary

	cmd  *exec.Cmd
	url  string
	key  string
	http *caller
	gone chan struct{} // closed when the process has ended

	mu  sync.Mutex
	log bytes.Buffer // of all runs
}

// serve starts a server with an empty data directory. Flags come on top of
// those that every test wants.
func serve(t *testing.T, flags ...string) *server {
	t.Helper()
	s := prepare(t, flags...)
	s.start()
	return s
}

// prepare is serve that does not start the server yet.
func prepare(t *testing.T, flags ...string) *server {
	t.Helper()
	return &server{t: t, dir: t.TempDir(), database: pgtest.Chosen(t), args: flags}
}

// where is the environment of a program that looks for the server's database.
func (s *server) where() []string { return []string{"FANFARE_DB=" + s.database} }

// command is the command line of the server.
func (s *server) command() []string {
	args := []string{"serve", "--data-dir", s.dir, "--listen", "127.0.0.1:0", "--public-url", "https://news.example.org"}
	if !slices.Contains(s.args, "--durability") {
		args = append(args, "--durability", "relaxed")
	}
	if !slices.Contains(s.args, "--disk-floor") {
		args = append(args, "--disk-floor", "0")
	}
	return append(args, s.args...)
}

// start runs the server, again after it has ended, until it says where it
// listens, and reads its admin key.
func (s *server) start() {
	s.t.Helper()
	s.launch()
	key, err := os.ReadFile(s.path("admin.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.use(strings.TrimSpace(string(key)))
}

// use makes requests with a key.
func (s *server) use(key string) {
	s.key = key
	s.http = &caller{t: s.t, url: s.url, key: s.key, service: "news", http: plainHTTP}
}

// launch runs the server until it says where it listens.
func (s *server) launch() {
	s.t.Helper()
	if s.disk != nil {
		s.cmd = s.disk.command(s.t, s.command())
	} else {
		s.cmd = exec.Command(cmp.Or(s.program, binary), s.command()...)
	}
	s.cmd.Env = slices.Concat(os.Environ(), s.cmd.Env, s.where(), s.env)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("cannot start the server: %v", err)
	}
	cmd, gone, listens := s.cmd, make(chan struct{}), make(chan string, 1)
	s.gone = gone
	go func() {
		defer close(gone)
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			s.mu.Lock()
			s.log.Write(append(lines.Bytes(), '\n'))
			s.mu.Unlock()
			if at, ok := strings.CutPrefix(lines.Text(), "fanfare listens on "); ok {
				listens <- at
			}
		}
		_ = cmd.Wait() // its state tells how it ended
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended where the test stopped it
		<-gone
		if s.t.Failed() {
			s.t.Logf("log of the server:\n%s", tail(s.logged(), 6000))
		}
	})
	select {
	case s.url = <-listens:
	case <-gone:
		s.t.Fatalf("the server ended with %d:\n%s", cmd.ProcessState.ExitCode(), s.logged())
	case <-time.After(patience):
		s.t.Fatal("the server does not listen")
	}
}

// path is where the test finds a file of the data directory.
func (s *server) path(name string) string {
	if s.disk != nil {
		return s.disk.path(s.cmd.Process.Pid, filepath.Join(s.dir, name))
	}
	return filepath.Join(s.dir, name)
}

// stop asks the server to end, and returns its exit code.
func (s *server) stop() (code int) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Fatal(err)
	}
	select {
	case <-s.gone:
	case <-time.After(patience):
		s.t.Fatal("the server does not end")
	}
	return s.cmd.ProcessState.ExitCode()
}

// mustStop is stop for where all is in order.
func (s *server) mustStop() {
	s.t.Helper()
	if code := s.stop(); code != 0 {
		s.t.Fatalf("the server ended with %d", code)
	}
}

func (s *server) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func tail(s string, most int) string {
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// A ran is what came of a command line.
type ran struct {
	code     int
	out, err string
}

// run executes a command of the program against the server.
func (s *server) run(input string, args ...string) ran {
	s.t.Helper()
	return run(s.t, []string{"FANFARE_SERVER=" + s.url, "FANFARE_KEY=" + s.key}, input, args...)
}

// mustRun is run for commands that succeed; it returns their output.
func (s *server) mustRun(input string, args ...string) string {
	s.t.Helper()
	r := s.run(input, args...)
	if r.code != 0 {
		s.t.Fatalf("fanfare %s ended with %d: %s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

func run(t *testing.T, env []string, input string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = t.TempDir()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	if err := cmd.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			t.Fatal(err)
		}
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	eventuallyWith(t, what, cond, func() string { return "" })
}

// eventuallyWith is eventually that says more where it fails.
func eventuallyWith(t *testing.T, what string, cond func() bool, more func() string) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !cond() {
		select {
		case <-deadline.C:
			t.Fatalf("did not come about: %s %s", what, more())
		case <-again.C:
		}
	}
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
