package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// service is the only one of a bench server.
const service = "bench"

// A server is a running fanfare serve.
type server struct {
	*child
	api     *client.Client
	url     string
	key     string
	data    string
	ready   time.Duration // from the start of the process to the first answer
	lab     *lab
	toggled int // how often the profile was
}

// serve starts a server on the data directory of that name, in the default
// configuration but for the durability and what a test machine needs: a free
// port, and a public URL so that mails carry their unsubscribe links. more are
// further arguments.
func (l *lab) serve(data string, more ...string) (*server, error) {
	dir := l.file(data)
	env, err := l.environment(data)
	if err != nil {
		return nil, err
	}
	if l.Pprof != "" && data != sampleData {
		if err := os.MkdirAll(l.Pprof, 0o750); err != nil {
			return nil, err
		}
		env = append(env, "FANFARE_CPUPROFILE="+filepath.Join(l.Pprof, fmt.Sprintf("%s-%s-%d.pprof", data, l.Durability, time.Now().UnixMilli())))
	}
	if l.threads > 0 {
		env = append(env, fmt.Sprintf("GOMAXPROCS=%d", l.threads))
	}
	started := time.Now()
	args := append([]string{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0",
		"--durability", l.Durability, "--public-url", "https://news.example.org"}, more...)
	c, err := l.spawn("server", env, l.Tested, args...)
	if err != nil {
		return nil, err
	}
	s := &server{child: c, lab: l, data: data}
	ctx, cancel := context.WithTimeout(l.ctx, 2*time.Minute)
	defer cancel()
	err = c.tail(ctx, func(line string) bool {
		_, url, found := strings.Cut(line, "fanfare listens on ")
		s.url = strings.TrimSpace(url)
		return found
	})
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		return nil, err
	}
	s.key = strings.TrimSpace(string(key))
	api, err := client.New(s.url, s.key)
	if err != nil {
		return nil, err
	}
	s.api = api.ForService(service)
	if _, err := api.Status(ctx); err != nil {
		return nil, err
	}
	s.ready = time.Since(started)
	return s, nil
}

// attach returns a server that runs in this process already, for tests.
func attach(l *lab, url, key string) (*server, error) {
	self, err := os.FindProcess(os.Getpid()) // its peak of memory is looked at
	if err != nil {
		return nil, err
	}
	api, err := client.New(url, key)
	if err != nil {
		return nil, err
	}
	return &server{child: &child{ended: true, cmd: &exec.Cmd{Process: self}}, api: api.ForService(service), url: url, lab: l}, nil
}

// toggleProfile begins, then ends the profile, where one is asked for. A server
// writes one: further calls do nothing.
func (s *server) toggleProfile() error {
	if s.toggled++; s.lab.Pprof == "" || s.toggled > 2 {
		return nil
	}
	return s.cmd.Process.Signal(syscall.SIGUSR1)
}

// stallPatience is how long nothing may happen before a wait is given up.
const stallPatience = time.Minute

// A stall notices that nothing happens any more.
type stall struct {
	last  int64
	since time.Time
}

// moved takes how far things are, and returns an error where that has been the
// same for too long.
func (s *stall) moved(now int64) error {
	if now != s.last || s.since.IsZero() {
		s.last, s.since = now, time.Now()
	}
	if time.Since(s.since) > stallPatience {
		return fmt.Errorf("nothing has happened for %v, at %d", stallPatience, now)
	}
	return nil
}

// pauseAll keeps everything from leaving.
func (s *server) pauseAll() error {
	return s.api.Pause(s.lab.ctx, fanfare.Scope{Kind: fanfare.ScopeService, Name: service}, "only the matches are wanted")
}

// quiet waits until nothing is under way, and returns how far the history
// index is behind then.
func (s *server) quiet(progress func(pending int64)) (lag int64, err error) {
	var still stall
	var most int64
	began := time.Now()
	for {
		status, err := s.api.Status(s.lab.ctx)
		if err != nil {
			return 0, err
		}
		pending := status.Bus.EventsPending + status.Deliveries.Pending + status.Deliveries.Deferred
		if pending == 0 && status.Bus.BatchesPending == 0 {
			return status.IndexLagEvents, nil
		}
		progress(pending)
		if err := still.moved(pending); err != nil {
			return 0, s.failed(err)
		}
		most = max(most, pending)
		if err := pause(s.lab.ctx, pollPause(time.Since(began), most-pending, most)); err != nil {
			return 0, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
