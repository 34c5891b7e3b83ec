package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// A stop in good order costs nobody a mail and gives nobody a second one.
func TestStopInTheMiddleOfABroadcastLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "rate: 2000/s, connections: 20")
	people := crowd(4000)
	s.subscribe(people...)
	event := s.http.publish(`{"title":"to all"}`)
	for stops := 1; stops <= 3; stops++ {
		eventually(t, "some more mails", func() bool { return r.total() >= stops*1000 })
		s.mustStop()
		s.start()
	}
	b := s.http.completed(event)
	if b.Counts[fanfare.Accepted] != int64(len(people)) {
		t.Errorf("got %v", b.Counts)
	}
	r.only(people...)
	if n := r.sink.Stats().Duplicates; n != 0 {
		t.Errorf("%d duplicates", n)
	}
}

// A stop is no failure: a server that is stopped in the middle of an import, of
// matching and of a broadcast logs no error, at whatever moment the stop comes.
func TestStopOfABusyServerLogsNoError(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "rate: 3000/s, connections: 20")
	s.subscribe(crowd(500)...)
	for stop := range 8 {
		sent, answered := r.total(), make(chan struct{}, 1000)
		var work sync.WaitGroup
		// Each request is repeated until the server refuses it or is gone.
		repeat := func(path, body string) {
			work.Go(func() {
				for s.http.takes(path, body) {
					select {
					case answered <- struct{}{}:
					default:
					}
				}
			})
		}
		repeat("/v1/topics/story/events", strings.Repeat(`{"title":"one of many"}`+"\n", 50))
		repeat("/v1/topics/story/events", `{"title":"one"}`)
		repeat("/v1/subscriptions?quiet=true", importOf(stop, 5000))
		repeat("/v1/topics/story/match", `{"title":"one"}`)
		for range 2 + 3*stop {
			<-answered
		}
		eventually(t, "some more mails", func() bool { return r.total() > sent+100*stop })
		s.mustStop()
		work.Wait()
		s.start()
	}
	s.mustStop()
	for line := range strings.Lines(s.logged()) {
		if strings.Contains(line, "level=ERROR") {
			t.Errorf("the log of a server that was stopped says %s", line)
		}
	}
}

// takes reports whether the server answers a request with a status of success.
func (c *caller) takes(path, body string) bool {
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		return false
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("X-Fanfare-Service", c.service)
	r.Header.Set("Content-Type", lines)
	if !strings.Contains(body, "\n") {
		r.Header.Set("Content-Type", plain)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode < 300
}

// importOf is the body of an import of n subscriptions.
func importOf(number, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"topic":"story","channel":"email","to":"%d-%d@example.org","filter":"event.title == 'other %d'"}`+"\n", number, i, i)
	}
	return b.String()
}

// Stopping a server that waits for its database is not reported as a failure.
func TestStopWhileTheStartWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(binary, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "FANFARE_DB=postgres://fanfare@127.0.0.1:1/fanfare")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the start has begun", func() bool {
		_, err := os.Lstat(filepath.Join(dir, "lock"))
		return err == nil
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "stopped before the server was ready") || strings.Contains(said.String(), "canceled") {
		t.Errorf("it ended with %v, and said\n%s", err, &said)
	}
}

// A relay that does not answer cannot hold up a stop for longer than was set: this one
// answers when the test is over.
func TestStopWaitsNoLongerThanItsTimeout(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "", "--drain-timeout", "1s")
	r.hold(0)
	s.subscribe("a@example.org")
	s.http.publish(`{"title":"stuck"}`)
	eventually(t, "the mail is at the relay", func() bool { return r.total() == 1 })
	s.mustStop()
}

// A server that was killed goes on where it was.
func TestKilledServerLosesNothing(t *testing.T) {
	t.Parallel()
	const connections = 5
	s, r := newsroom(t, sink.Config{}, "rate: 1000/s, connections: 5")
	people := crowd(1000)
	s.subscribe(people...)
	event := s.http.publish(`{"title":"to all"}`)
	eventually(t, "some mails", func() bool { return r.total() >= 300 })
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.gone
	s.start()
	s.http.completed(event)
	got := r.sink.Stats()
	if got.Unique != int64(len(people)) || got.Duplicates > connections {
		t.Errorf("%d people got it, %d twice; want all, and at most one for each of %d connections", got.Unique, got.Duplicates, connections)
	}
}
