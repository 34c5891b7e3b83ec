//go:build crashsteps

package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// server is one data directory and the process that runs on it at the moment.
type server struct {
	t          *teller
	dir        string
	durability string
	database   string // its URL; "": files in dir
	env        []string
	listenAt   string         // address of the API; another one for each life by default
	losePower  func()         // between two lives; nil: only the process dies
	fail       func(kind int) // makes the disk fail from now on; 0: no longer

	mu      sync.Mutex
	now     *life
	changed chan struct{} // closed when now is set
	log     []string      // warnings and errors of all lives, but for lost connections
	lost    int           // connections to the relay, which drops some on purpose
	slowest time.Duration // from start to ready
}

// life is one process, from its start to its death.
type life struct {
	cmd    *exec.Cmd
	begun  time.Time
	ready  chan struct{} // closed when it answers
	mail   string        // where mail comes in, before ready; "" where none does
	lmtp   string        // where mail for mailboxes comes in, and
	imap   string        // where they can be opened, before ready; "" where they cannot
	compat chan string   // gets the address of the NotifyBC API when it is open
	url    string        // and key, before ready
	key    string
	client *client.Client
	alive  context.Context // ends with the process
	died   error           // what Wait returned
}

// cutPower makes a new server lose its power between two lives; nil: only its process dies.
var cutPower func(*server)

// logged is how many of the server's warnings a failure shows.
const logged = 40

func newServer(t *teller, durability, database string, env ...string) *server {
	t.Helper()
	s := &server{t: t, dir: filepath.Join(t.TempDir(), "data"), durability: durability, database: database, env: env, listenAt: "127.0.0.1:0", changed: make(chan struct{})}
	if cutPower != nil {
		cutPower(s)
	}
	t.Cleanup(func() {
		if l := s.current(); l != nil {
			<-l.alive.Done() // it was killed with the test's context
		}
		if t.Failed() {
			t.Logf("the server's last warnings, without %d lost connections:\n%s", s.lost, strings.Join(s.log[max(0, len(s.log)-logged):], "\n"))
		}
	})
	return s
}

// start begins a new life and does not wait for it to be ready. The environment is
// that life's, on top of what all have.
func (s *server) start(env ...string) *life {
	s.t.Helper()
	if s.losePower != nil && s.current() != nil {
		s.losePower()
	}
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), path, "serve", "--data-dir", s.dir, "--listen", s.listenAt,
		"--durability", s.durability, "--log-format", "json")
	cmd.Env = slices.Concat(os.Environ(), []string{"FANFARE_DB=" + s.database}, s.env, env)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	l := &life{cmd: cmd, begun: time.Now(), ready: make(chan struct{}), compat: make(chan string, 1)}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	var end context.CancelFunc
	l.alive, end = context.WithCancel(context.Background())
	go func() {
		s.listen(l, stderr)
		l.died = cmd.Wait()
		end()
	}()
	s.mu.Lock()
	s.now = l
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	return l
}

// listen reads the log of a life until it ends.
func (s *server) listen(l *life, log io.Reader) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Level, Msg, URL, Listen string }
		if err := json.Unmarshal(lines.Bytes(), &line); err == nil && line.Level == "INFO" {
			switch line.Msg {
			case "accepting mail":
				l.mail = line.Listen
			case "accepting mail for mailboxes":
				l.lmtp = line.Listen
			case "serving mailboxes over IMAP":
				l.imap = line.Listen
			case "serving the NotifyBC API":
				l.compat <- line.URL
			}
			if line.Msg == "ready" && line.URL != "" {
				s.greet(l, line.URL)
			}
			continue
		}
		s.mu.Lock()
		if line.Msg == "connection lost" {
			s.lost++
		} else {
			s.log = append(s.log, lines.Text())
		}
		s.mu.Unlock()
	}
}

// greet makes the client of a life that says it is ready.
func (s *server) greet(l *life, url string) {
	key, err := os.ReadFile(filepath.Join(s.dir, "admin.key"))
	if err != nil {
		s.t.Error(err)
		return
	}
	l.url, l.key = url, strings.TrimSpace(string(key))
	c, err := client.New(l.url, l.key)
	if err != nil {
		s.t.Error(err)
		return
	}
	l.client = c.ForService("news")
	close(l.ready)
	s.mu.Lock()
	s.slowest = max(s.slowest, time.Since(l.begun))
	s.mu.Unlock()
}

func (s *server) current() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// awaitReady returns when a life answers; a server that ends by itself or needs
// too long has broken its promise.
func (s *server) awaitReady(l *life) {
	s.t.Helper()
	select {
	case <-l.ready:
	case <-l.alive.Done():
		s.t.Fatalf("the server ended before it was ready: %v", l.died)
	case <-time.After(patience):
		s.t.Fatal("the server was not ready in time")
	}
}

// kill ends a life as kill -9 does.
func (s *server) kill(l *life) {
	s.t.Helper()
	if err := l.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Fatal(err)
	}
	<-l.alive.Done()
	s.wasKilled(l)
}

// stop ends a life as its users do.
func (s *server) stop(l *life) {
	s.t.Helper()
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	<-l.alive.Done()
	if l.died != nil {
		s.t.Fatalf("the server was stopped: %v", l.died)
	}
}

// awaitDeath returns when a life has killed itself. The failure
// message names what.
func (s *server) awaitDeath(ctx context.Context, l *life, what string) {
	s.t.Helper()
	select {
	case <-l.alive.Done():
		s.wasKilled(l)
	case <-ctx.Done():
		s.t.Fatalf("waiting that the server %s: %v", what, context.Cause(ctx))
	case <-time.After(patience):
		s.t.Fatalf("in %v it did not come about that the server %s", patience, what)
	}
}

// wasKilled makes sure that a life ended by SIGKILL and by nothing else.
func (s *server) wasKilled(l *life) {
	s.t.Helper()
	var exit *exec.ExitError
	if !errors.As(l.died, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		s.t.Fatalf("the server ended by itself: %v", l.died)
	}
}

// next returns a life that answers, after the given one has died; nil when ctx
// ends.
func (s *server) next(ctx context.Context) *life {
	for {
		s.mu.Lock()
		l, changed := s.now, s.changed
		s.mu.Unlock()
		if l != nil && l.alive.Err() == nil {
			select {
			case <-l.ready:
				return l
			case <-l.alive.Done():
			case <-ctx.Done():
				return nil
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// mayRepeat reports whether a request may succeed later: the server is not ready, or its disk fails because the test wants that.
func (s *server) mayRepeat(code fanfare.Code) bool {
	return code == fanfare.Unavailable || s.fail != nil && (code == fanfare.DiskFull || code == fanfare.Internal)
}

// do calls the API until it answers, over as many lives as that takes. It
// returns an error where the server refuses, and the cause where ctx ends.
func (s *server) do(ctx context.Context, call func(context.Context, *client.Client) error) error {
	for {
		l := s.next(ctx)
		if l == nil {
			return context.Cause(ctx)
		}
		both, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(l.alive, cancel)
		err := call(both, l.client)
		stop()
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, refused := errors.AsType[*fanfare.Error](err); refused && !s.mayRepeat(fanfare.CodeOf(err)) {
			return err
		}
		select { // a connection that broke is the first sign of a death
		case <-l.alive.Done():
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}
