package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/session"
	"fanfare.dev/fanfare/client/worker"
)

// runWorker is the program that agents start in these tests: by default, it answers a number with its double, after a time.
func runWorker(args []string) int {
	if args[0] == "die" {
		fmt.Fprintln(os.Stderr, "starting\nno module named render")
		return 3
	}
	if args[0] == "filter" {
		return runFilter(args[1:])
	}
	if args[0] == "pipeline" {
		return runPipeline()
	}
	pause, err := time.ParseDuration(args[0])
	if err != nil {
		return 2
	}
	err = worker.Run(context.Background(), worker.Options{}, func(_ context.Context, task *worker.Task) ([]byte, error) {
		<-time.After(pause)
		n, err := strconv.Atoi(string(task.Body))
		return []byte(strconv.Itoa(2 * n)), err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A host is an agent with the file that says what it may run.
type host struct {
	t    *testing.T
	args []string
	cmd  *exec.Cmd
	gone chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// newHost starts an agent that may run n instances of worker double with the program of these tests.
func newHost(t *testing.T, s *server, name string, n int) *host {
	t.Helper()
	folder := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	key := s.mustRun("", "key", "create", "--service", "news", "--scope", "work", "--name", name)
	text := fmt.Sprintf("name: %s\nserver: %s\nkey_file: agent.key\nmax_instances: %d\nworkers:\n  - service: news\n    worker: double\n    programs: [[%s, worker]]\n", name, s.url, n, self)
	if os.Geteuid() == 0 {
		text += "    user: root\n"
	}
	for file, content := range map[string]string{"agent.key": key, "agent.yaml": text} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := &host{t: t, args: []string{"workers", "--config", filepath.Join(folder, "agent.yaml")}}
	h.start()
	t.Cleanup(func() {
		if t.Failed() {
			h.mu.Lock()
			t.Logf("log of agent %s:\n%s", name, h.log.String())
			h.mu.Unlock()
		}
	})
	t.Cleanup(h.stop)
	return h
}

func (h *host) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(b)
}

func (h *host) start() {
	h.t.Helper()
	h.cmd = exec.Command(binary, h.args...)
	h.cmd.Stdout, h.cmd.Stderr = h, h
	h.gone = make(chan struct{})
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() { defer close(h.gone); h.cmd.Wait() }()
}

func (h *host) stop() {
	h.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-h.gone:
	case <-time.After(patience):
		h.t.Error("an agent does not stop")
		h.kill()
	}
}

func (h *host) kill() { h.cmd.Process.Kill(); <-h.gone }

// double registers the worker with a command and a version.
func (s *server) double(version string, args ...string) {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	command := append([]string{self, "worker"}, args...)
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf("service: news\nworkers:\n  double: {command: [%s], version: %q, concurrency: 1, prefetch: 1}\n", strings.Join(command, ", "), version))
}

// openDouble opens a session of the worker.
func (s *server) openDouble(o session.Options) *session.Session {
	s.t.Helper()
	c, err := client.New(s.url, strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news", "--scope", "sessions", "--name", "trader")))
	if err != nil {
		s.t.Fatal(err)
	}
	o.Worker = "double"
	opened, err := session.Open(s.t.Context(), c, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return opened
}

// A load is a client that sends numbers and checks that each gets its double once.
type load struct {
	done chan struct{}

	mu       sync.Mutex
	received int
}

func (l *load) count() int { l.mu.Lock(); defer l.mu.Unlock(); return l.received }

func (s *server) startLoad(opened *session.Session, name string, n int) *load {
	s.t.Helper()
	c, err := opened.Client(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	l := &load{done: make(chan struct{})}
	go func() {
		for i := 1; i <= n; i++ {
			if _, err := c.Send(s.t.Context(), []byte(strconv.Itoa(i))); err != nil {
				s.t.Errorf("request %d: %v", i, err)
				return
			}
		}
		if err := c.EndCount(s.t.Context(), uint64(n)); err != nil {
			s.t.Errorf("end: %v", err)
		}
	}()
	go func() {
		defer close(l.done)
		seen := make([]int, n+1)
		for r, err := range c.Responses(s.t.Context()) {
			if err != nil {
				s.t.Errorf("responses: %v", err)
				return
			}
			if err := r.Err(); err != nil || string(r.Body) != strconv.Itoa(2*int(r.Request)) {
				s.t.Errorf("request %d: %q, %v", r.Request, r.Body, err)
			}
			seen[r.Request]++
			l.mu.Lock()
			l.received++
			l.mu.Unlock()
		}
		for i, times := range seen[1:] {
			if times != 1 {
				s.t.Errorf("request %d has %d responses", i+1, times)
			}
		}
	}()
	return l
}

func (l *load) await(t *testing.T) {
	t.Helper()
	select {
	case <-l.done:
	case <-time.After(patience):
		t.Fatalf("only %d responses", l.count())
	}
}

type agentPage struct {
	Agents []struct {
		Name    string
		Workers []struct {
			Failures  int
			Instances []struct {
				Name, State, Version string
				PID                  int
			}
			LastExit *struct {
				Reason string
				Output []string
			} `json:"last_exit"`
			Refusal *struct{ Pointer, Message string }
		}
	}
}

func (s *server) agents() agentPage {
	s.t.Helper()
	return into[agentPage](s.t, s.http.must(200, "GET", "/v1/agents", "", ""))
}

// instances returns the processes of running instances by version, and how many instances there are at all.
func (s *server) instances() (byVersion map[string][]int, all int) {
	byVersion = map[string][]int{}
	for _, a := range s.agents().Agents {
		for _, w := range a.Workers {
			all += len(w.Instances)
			for _, i := range w.Instances {
				if i.State == "running" {
					byVersion[i.Version] = append(byVersion[i.Version], i.PID)
				}
			}
		}
	}
	return byVersion, all
}

// Agents start as many instances as the load needs, at most those that the session allows, and end them when the load is gone.
func TestInstancesFollowTheLoad(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.double("1", "50ms")
	newHost(t, s, "host-1", 6)
	newHost(t, s, "host-2", 6)
	opened := s.openDouble(session.Options{MaxInstances: 8})
	if running, all := s.instances(); all != 0 {
		t.Errorf("without load, there are instances: %v", running)
	}
	l := s.startLoad(opened, "a", 600)
	eventually(t, "eight instances", func() bool { running, all := s.instances(); return len(running["1"]) == 8 && all == 8 })
	l.await(t)
	if err := opened.Close(t.Context(), true); err != nil {
		t.Error(err)
	}
	eventually(t, "no instance", func() bool { _, all := s.instances(); return all == 0 })
}

// A new version, killed instances, and a killed agent under load cost no request and no response.
func TestAgentsLoseNothingUnderLoad(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.double("1", "2ms")
	first := newHost(t, s, "host-1", 3)
	newHost(t, s, "host-2", 3)
	opened := s.openDouble(session.Options{Kind: session.Durable, MinInstances: 4})
	eventually(t, "four instances", func() bool { running, _ := s.instances(); return len(running["1"]) == 4 })
	l := s.startLoad(opened, "a", 20_000)
	eventually(t, "the first responses", func() bool { return l.count() > 500 })
	s.double("2", "2ms")
	eventually(t, "the new version", func() bool { running, all := s.instances(); return len(running["2"]) >= 4 && all == len(running["2"]) })
	for range 3 {
		running, _ := s.instances()
		if len(running["2"]) > 0 {
			syscall.Kill(running["2"][0], syscall.SIGKILL)
		}
		before := l.count()
		eventually(t, "further responses", func() bool { return l.count() > before+100 || l.count() == 20_000 })
	}
	first.kill()
	eventually(t, "instances at the other host", func() bool { running, _ := s.instances(); return len(running["2"]) == 3 })
	first.start()
	eventually(t, "instances at both hosts", func() bool { running, _ := s.instances(); return len(running["2"]) >= 4 })
	if l.count() == 20_000 {
		t.Log("the load ended before the last step")
	}
	l.await(t)
}

// A command that dies at once is shown with its last output. A command that the file of the agent does not allow is refused, and the
// refusal is in the audit log.
func TestAgentsShowDeadAndRefusedCommands(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.double("1", "die")
	newHost(t, s, "host-1", 2)
	opened := s.openDouble(session.Options{MinInstances: 1})
	eventually(t, "the last output", func() bool {
		for _, a := range s.agents().Agents {
			if exit := a.Workers[0].LastExit; exit != nil && exit.Reason == "it exited with code 3" && strings.Join(exit.Output, "|") == "starting|no module named render" {
				return true
			}
		}
		return false
	})
	for _, path := range []string{"/v1/workers/double", "/v1/sessions/" + opened.ID()} {
		var problem member
		eventually(t, "the reason at "+path, func() bool {
			problem = into[struct{ Problem member }](t, s.http.must(200, "GET", path, "", "")).Problem
			return problem.Code != ""
		})
		if problem.Code != "unavailable" || !strings.HasPrefix(problem.Detail, "no instance of worker double could start: ") || !strings.HasSuffix(problem.Detail, "the command failed: it exited with code 3; its last output was:\nstarting\nno module named render") {
			t.Errorf("%s: %+v", path, problem)
		}
	}
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nworkers: {double: {command: [/bin/sh, -c, 'id'], version: '2'}}\n")
	eventually(t, "the refusal", func() bool {
		for _, a := range s.agents().Agents {
			if r := a.Workers[0].Refusal; r != nil && r.Pointer == "/command" && strings.Contains(r.Message, "does not allow the command") {
				return true
			}
		}
		return false
	})
	eventually(t, "the entry in the audit log", func() bool {
		for _, e := range into[auditPage](t, s.http.must(200, "GET", "/v1/audit?action=refuse", "", "")).Audit {
			if e.Service == "news" && e.Kind == "worker" && e.Name == "double" {
				return true
			}
		}
		return false
	})
	s.double("3", "1ms")
	eventually(t, "an instance", func() bool { running, _ := s.instances(); return len(running["3"]) == 1 })
}
