package upgrade

import (
	"bufio"
	"bytes"
	"encoding/json"
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
	"time"

	"fanfare.dev/fanfare"
)

// patience is how long a test waits for what must come about. It decides only
// how long a failure takes.
const patience = 30 * time.Second

// A server is a process that runs on a data directory.
type server struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	key  string
	gone chan struct{} // closed when the process has ended

	mu  sync.Mutex
	log bytes.Buffer
}

// launch starts a program on a data directory and returns without waiting.
func launch(t *testing.T, program, dir string, env []string) (s *server, listens <-chan string) {
	t.Helper()
	s = &server{t: t, gone: make(chan struct{})}
	s.cmd = exec.CommandContext(t.Context(), program, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0",
		"--durability", "relaxed", "--disk-floor", "0", "--retention-days", "36500")
	s.cmd.Env = append(os.Environ(), env...)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	at := make(chan string, 1)
	go func() {
		defer close(s.gone)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			s.mu.Lock()
			s.log.Write(append(lines.Bytes(), '\n'))
			s.mu.Unlock()
			if url, ok := strings.CutPrefix(lines.Text(), "fanfare listens on "); ok {
				at <- url
			}
		}
		_ = s.cmd.Wait() // its state tells how it ended
	}()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("log of the server:\n%s", s.logged())
		}
	})
	return s, at
}

// serve starts a program on a data directory.
func serve(t *testing.T, program, dir string, env ...string) *server {
	t.Helper()
	s, listens := launch(t, program, dir, env)
	select {
	case s.url = <-listens:
	case <-s.gone:
		t.Fatalf("the server ended with %d:\n%s", s.cmd.ProcessState.ExitCode(), s.logged())
	case <-time.After(patience):
		t.Fatal("the server does not listen")
	}
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	s.key = strings.TrimSpace(string(key))
	return s
}

func (s *server) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.gone
}

func (s *server) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	<-s.gone
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Fatalf("the server ended with %d", code)
	}
}

var web = &http.Client{Timeout: patience}

// send makes one request; there is only the service "news".
func (s *server) send(method, path, contentType, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	response, err := web.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response.StatusCode, string(text)
}

// must is send that succeeds; it reads the answer into out, if any.
func (s *server) must(method, path, contentType, body string, out any) {
	s.t.Helper()
	status, text := s.send(method, path, contentType, body)
	if status >= 300 {
		s.t.Fatalf("%s %s: got %d: %s", method, path, status, text)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		s.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
}

func (s *server) apply(document string) {
	s.t.Helper()
	s.must("POST", "/v1/apply", "application/yaml", document, nil)
}

// subscribe lets people have the events of a topic by its channel.
func (s *server) subscribe(channel string, people ...string) {
	s.t.Helper()
	var b strings.Builder
	for _, p := range people {
		fmt.Fprintf(&b, "{\"topic\":%q,\"channel\":%q,\"to\":%q,\"id\":%q}\n", topicOf(channel), channel, p, channel+"-"+p)
	}
	s.must("POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", b.String(), nil)
}

func (s *server) publish(channel, title string) (id string) {
	s.t.Helper()
	var answer struct{ Events []struct{ ID string } }
	s.must("POST", "/v1/topics/"+topicOf(channel)+"/events", "application/json", fmt.Sprintf(`{"title":%q}`, title), &answer)
	return answer.Events[0].ID
}

func (s *server) control(what string, kind fanfare.ScopeKind, name string) {
	s.t.Helper()
	scope, err := json.Marshal(map[string]any{"scope": fanfare.Scope{Kind: kind, Name: name}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.must("POST", "/v1/"+what, "application/json", string(scope), nil)
}

// broadcast is what an event set off; all zero while it is not matched.
func (s *server) broadcast(id string) (b fanfare.Broadcast) {
	s.t.Helper()
	if status, _ := s.send("GET", "/v1/events/"+id, "", ""); status == http.StatusOK {
		s.must("GET", "/v1/events/"+id, "", "", &b)
	}
	return b
}

func (s *server) parked() []fanfare.Parked {
	s.t.Helper()
	var list struct{ Parked []fanfare.Parked }
	s.must("GET", "/v1/parked", "", "", &list)
	return list.Parked
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !cond() {
		select {
		case <-deadline.C:
			t.Fatal("did not come about: " + what)
		case <-again.C:
		}
	}
}
