package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"fanfare.dev/fanfare/internal/session"
	program "fanfare.dev/fanfare/internal/session/agent"
	"fanfare.dev/fanfare/internal/session/agentmessage"
)

// TestMain lets the test binary also be the programs that agents start.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "child" {
		if os.Args[2] == "die" {
			fmt.Fprintln(os.Stderr, "no module named render")
			os.Exit(3)
		}
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		<-ended
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// withAgent adds a real agent, whose file allows the commands serve and die, and a broker to which each process connects. The
// returned function stops the agent.
func (s *scene) withAgent(name string, most int) (stop func()) {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	path := s.t.TempDir() + "/agent.yaml"
	text := fmt.Sprintf("name: %s\nmax_instances: %d\nworkers:\n  - {service: s, worker: w, commands: [[%s, child, serve], [%s, child, die]]", name, most, self, self)
	if os.Geteuid() == 0 {
		text += ", user: root"
	}
	if err := os.WriteFile(path, []byte(text+"}\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	config, err := program.Load(path)
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := program.New(program.Options{Config: config, Logger: slog.New(slog.DiscardHandler), Dial: func(context.Context) (session.Conn, error) {
		mine, theirs := newPipe()
		go s.hub.ServeAgent(s.t.Context(), theirs, "", name, "")
		return mine, nil
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.Run(ctx); err != nil {
			s.t.Errorf("the agent: %v", err)
		}
	}()
	stop = func() { cancel(); <-done }
	s.t.Cleanup(stop)
	return stop
}

// define sets the command of worker w.
func (s *scene) define(command, version string) {
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.set(func() {
		s.definitions[named("w")] = session.Definition{Service: "s", Name: "w", Command: []string{self, "child", command}, Version: version, Concurrency: 1}
	})
}

// processes returns the processes of all agents in a state, and connects those that have started if the command is serve.
func (s *scene) processes(state string) (all []agentmessage.Instance) {
	var connected []session.InstanceInfo
	for _, a := range s.hub.Agents("") {
		for _, w := range a.Workers {
			for _, i := range w.Instances {
				if i.State == state {
					all = append(all, i)
				}
				if i.Name != "" && i.State != agentmessage.Draining {
					connected = append(connected, session.InstanceInfo{Name: i.Name})
				}
			}
		}
	}
	s.mu.Lock()
	if s.definitions[named("w")].Command[2] == "die" {
		connected = nil
	}
	s.connected[named("w")] = connected
	s.mu.Unlock()
	return all
}

func (s *scene) awaits(n int, state, version string) []agentmessage.Instance {
	s.t.Helper()
	var all []agentmessage.Instance
	eventually(s.t, fmt.Sprintf("%d instances of version %s are %s", n, version, state), func() bool {
		all = s.processes(state)
		for _, i := range all {
			if i.Version != version {
				return false
			}
		}
		return len(all) == n
	})
	return all
}

func TestRealAgentsGrowShrinkAndChangeTheVersion(t *testing.T) {
	s := newScene(t)
	s.define("serve", "1")
	s.withAgent("a", 4)
	stop := s.withAgent("b", 5)
	s.set(func() { s.demand[named("w")] = 8 })
	s.awaits(8, agentmessage.Running, "1")
	s.define("serve", "2")
	s.awaits(8, agentmessage.Running, "2")
	stop()
	s.awaits(4, agentmessage.Running, "2")
	s.set(func() { s.demand[named("w")] = 0 })
	s.awaits(0, agentmessage.Running, "2")
	eventually(t, "no process", func() bool { return len(s.processes(agentmessage.Draining)) == 0 })
}

func TestARealAgentReportsADeadCommandAndARefusal(t *testing.T) {
	s := newScene(t)
	s.define("die", "1")
	s.withAgent("a", 4)
	s.set(func() { s.demand[named("w")] = 2 })
	eventually(t, "a failure", func() bool {
		s.processes("")
		f := s.hub.Failure("s", "w")
		return f != nil && strings.HasSuffix(f.Message, "it exited with code 3; its last output was:\nno module named render")
	})
	s.define("other", "2")
	eventually(t, "a refusal", func() bool {
		s.processes("")
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.refusals) == 1
	})
	if r := s.refusals[0]; r.Agent != "a" || r.Pointer != "/command" || r.Version != "2" || !strings.Contains(r.Message, "does not allow the command") {
		t.Errorf("refusal: %+v", r)
	}
	s.define("serve", "3")
	s.awaits(2, agentmessage.Running, "3")
}
