package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/loadgen"
)

// SampleData is the name of the data directory of the server that sends the sample mail.
const SampleData = "sample"

// A Server is a running fanfare serve with a client for its API.
type Server struct {
	*Process
	API     *client.Client
	URL     string
	Key     string
	data    string
	Ready   time.Duration // from the start of the process to the first answer
	Env     *Env
	toggled int // calls of ToggleProfile

	NATS  *Process  // the NATS server that it uses; nil: its own
	Nodes []*Server // the other nodes of its cluster
}

// StartServer starts a server with the data directory of that name. It has the default
// configuration, except for the durability, a free port, and a public URL so that mails
// contain unsubscribe links. more are further arguments.
func (l *Env) StartServer(data string, more ...string) (*Server, error) {
	env, err := l.environment(data)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	s, err := l.launch(data, env, more...)
	if err != nil {
		return nil, err
	}
	if err := s.useAdminKey(); err != nil {
		return nil, err
	}
	s.Ready = time.Since(started)
	return s, nil
}

// startPatience is how long a server may take to start.
const startPatience = 2 * time.Minute

// launch starts a server and waits until it listens. env names its database.
func (l *Env) launch(data string, env []string, more ...string) (*Server, error) {
	if l.Pprof != "" && data != SampleData {
		if err := os.MkdirAll(l.Pprof, 0o750); err != nil {
			return nil, err
		}
		env = append(slices.Clone(env), "FANFARE_CPUPROFILE="+filepath.Join(l.Pprof, fmt.Sprintf("%s-%s-%d.pprof", data, l.Durability, time.Now().UnixMilli())))
	}
	if l.Threads > 0 {
		env = append(slices.Clone(env), fmt.Sprintf("GOMAXPROCS=%d", l.Threads))
	}
	args := append([]string{"serve", "--data-dir", l.File(data), "--listen", "127.0.0.1:0",
		"--durability", l.Durability, "--public-url", "https://news.example.org"}, more...)
	c, err := l.Spawn("server", env, l.Tested, args...)
	if err != nil {
		return nil, err
	}
	s := &Server{Process: c, Env: l, data: data}
	ctx, cancel := context.WithTimeout(l.Ctx, startPatience)
	defer cancel()
	return s, c.WaitForLog(ctx, func(line string) bool {
		_, url, found := strings.Cut(line, "fanfare listens on ")
		s.URL = strings.TrimSpace(url)
		return found
	})
}

// useAdminKey uses the API with the key that the server has created.
func (s *Server) useAdminKey() error {
	key, err := os.ReadFile(filepath.Join(s.Env.File(s.data), "admin.key"))
	if err != nil {
		return err
	}
	return s.useKey(strings.TrimSpace(string(key)))
}

// useKey uses the API with a key.
func (s *Server) useKey(key string) error {
	s.Key = key
	api, err := client.New(s.URL, s.Key)
	if err != nil {
		return err
	}
	s.API = api.ForService(loadgen.Service)
	ctx, cancel := context.WithTimeout(s.Env.Ctx, startPatience)
	defer cancel()
	_, err = api.Status(ctx)
	return err
}

// Stop stops the other nodes of the cluster, the server, and the NATS server that was
// started for it.
func (s *Server) Stop() error {
	var errs []error
	for _, n := range s.Nodes {
		errs = append(errs, n.Process.Stop())
	}
	errs = append(errs, s.Process.Stop())
	if s.NATS != nil {
		errs = append(errs, s.NATS.Wait())
	}
	return errors.Join(errs...)
}

// Attach returns a server whose API is served by this process, for tests.
func Attach(l *Env, url, key string) (*Server, error) {
	self, err := os.FindProcess(os.Getpid()) // ResetPeak needs a process
	if err != nil {
		return nil, err
	}
	api, err := client.New(url, key)
	if err != nil {
		return nil, err
	}
	return &Server{Process: &Process{ended: true, cmd: &exec.Cmd{Process: self}}, API: api.ForService(loadgen.Service), URL: url, Env: l}, nil
}

// ToggleProfile starts the CPU profile on the first call and ends it on the second, if a
// profile was asked for. Further calls do nothing.
func (s *Server) ToggleProfile() error {
	if s.toggled++; s.Env.Pprof == "" || s.toggled > 2 {
		return nil
	}
	errs := []error{s.cmd.Process.Signal(syscall.SIGUSR1)}
	for _, n := range s.Nodes {
		errs = append(errs, n.ToggleProfile())
	}
	return errors.Join(errs...)
}

// StallPatience is how long a wait may go on without progress.
const StallPatience = time.Minute

// A StallDetector detects that a wait makes no progress.
type StallDetector struct {
	last  int64
	since time.Time
}

// Check returns an error if the progress has been the same for too long.
func (s *StallDetector) Check(now int64) error {
	if now != s.last || s.since.IsZero() {
		s.last, s.since = now, time.Now()
	}
	if time.Since(s.since) > StallPatience {
		return fmt.Errorf("no progress for %v: the count is still %d", StallPatience, now)
	}
	return nil
}

// PauseAll pauses the service, so that no message leaves.
func (s *Server) PauseAll() error {
	return s.API.Pause(s.Env.Ctx, fanfare.Scope{Kind: fanfare.ScopeService, Name: loadgen.Service}, "only the matches are wanted")
}

// WaitIdle waits until no event and no delivery is pending, and returns how many events
// the history index is behind.
func (s *Server) WaitIdle(progress func(pending int64)) (lag int64, err error) {
	var still StallDetector
	var most int64
	began := time.Now()
	for {
		status, err := s.API.Status(s.Env.Ctx)
		if err != nil {
			return 0, err
		}
		pending := status.Bus.EventsPending + status.Deliveries.Pending + status.Deliveries.Deferred
		if pending == 0 && status.Bus.BatchesPending == 0 {
			return status.IndexLagEvents, nil
		}
		progress(pending)
		if err := still.Check(pending); err != nil {
			return 0, s.WithLog(err)
		}
		most = max(most, pending)
		if err := Pause(s.Env.Ctx, PollPause(time.Since(began), most-pending, most)); err != nil {
			return 0, err
		}
	}
}

func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
