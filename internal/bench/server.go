package bench

import (
	"context"
	"fmt"
	"os"
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
	api   *client.Client
	url   string
	key   string
	ready time.Duration // from the start of the process to the first answer
	lab   *lab
}

// serve starts a server on the data directory of that name, in the default
// configuration but for the durability and what a test machine needs: a free
// port, and a public URL so that mails carry their unsubscribe links.
func (l *lab) serve(data string, extra ...string) (*server, error) {
	dir := l.file(data)
	var env []string
	if l.Pprof != "" {
		if err := os.MkdirAll(l.Pprof, 0o750); err != nil {
			return nil, err
		}
		env = append(env, "FANFARE_CPUPROFILE="+filepath.Join(l.Pprof, fmt.Sprintf("%s-%s-%d.pprof", data, l.Durability, time.Now().UnixMilli())))
	}
	started := time.Now()
	args := append([]string{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--durability", l.Durability, "--public-url", "https://news.example.org"}, extra...)
	c, err := l.spawn("server", env, l.Binary, args...)
	if err != nil {
		return nil, err
	}
	s := &server{child: c, lab: l}
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

// toggleProfile begins and ends the profile, where one is asked for.
func (s *server) toggleProfile() error {
	if s.lab.Pprof == "" {
		return nil
	}
	return s.cmd.Process.Signal(syscall.SIGUSR1)
}

// completed waits until every delivery of an event is settled.
func (s *server) completed(event string, progress func(settled, total int64)) (fanfare.Broadcast, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := s.api.Event(s.lab.ctx, event)
		switch {
		case err != nil && fanfare.CodeOf(err) != fanfare.NotFound: // until it is matched
			return b, err
		case err == nil && b.State == "completed":
			return b, nil
		case err == nil:
			progress(b.Counts.Settled(), b.Messages)
		}
		select {
		case <-s.lab.ctx.Done():
			return b, s.lab.ctx.Err()
		case <-tick.C:
		}
	}
}
