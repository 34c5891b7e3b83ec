package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/agentmessage"
)

// A setClock is a clock that a test sets.
type setClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *setClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }
func (c *setClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// A pipe is one end of a connection in memory. The end that closes it says with which code.
type pipe struct {
	in, out chan []byte
	ended   context.Context
	end     context.CancelCauseFunc
}

func newPipe() (a, b *pipe) {
	ended, end := context.WithCancelCause(context.Background())
	x, y := make(chan []byte), make(chan []byte)
	return &pipe{x, y, ended, end}, &pipe{y, x, ended, end}
}

func (p *pipe) Read(ctx context.Context) ([]byte, error) {
	select {
	case b := <-p.in:
		return b, nil
	case <-p.ended.Done():
		return nil, context.Cause(p.ended)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipe) Write(ctx context.Context, b []byte) error {
	select {
	case p.out <- b:
		return nil
	case <-p.ended.Done():
		return context.Cause(p.ended)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipe) Close(code int, reason string) error {
	p.end(fmt.Errorf("closed with %d: %s", code, reason))
	return nil
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatalf("not reached: %s", what)
		}
	}
}

// A scene is a Hub with a broker and a configuration that the test sets.
type scene struct {
	t     *testing.T
	hub   *Hub
	clock *setClock

	mu          sync.Mutex
	demand      map[key]int
	definitions map[key]session.Definition
	connected   map[key][]session.InstanceInfo
	refusals    []Refusal
	failures    []string
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, clock: &setClock{at: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}, demand: map[key]int{}, connected: map[key][]session.InstanceInfo{},
		definitions: map[key]session.Definition{named("w"): {Service: "s", Name: "w", Command: []string{"/bin/w"}, Version: "1", Concurrency: 1}}}
	s.hub = New(Options{
		Demand: func() (all []session.Demand) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for k, n := range s.demand {
				all = append(all, session.Demand{Service: k.service, Worker: k.worker, Instances: n, Connected: len(s.connected[k])})
			}
			return all
		},
		Definition: func(service, worker string) (session.Definition, bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			d, ok := s.definitions[key{service, worker}]
			return d, ok
		},
		Instances: func(service, worker string) []session.InstanceInfo {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.connected[key{service, worker}]
		},
		Refused: func(r Refusal) { s.mu.Lock(); defer s.mu.Unlock(); s.refusals = append(s.refusals, r) },
		Failed: func(service, worker string, reason *fanfare.Error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			text := "works"
			if reason != nil {
				text = reason.Message
			}
			s.failures = append(s.failures, service+"/"+worker+": "+text)
		},
		Clock: s.clock, Logger: slog.New(slog.DiscardHandler),
	})
	s.clock.advance(settleTime)
	go s.hub.Run(t.Context())
	return s
}

func (s *scene) set(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	s.hub.Changed()
}

// A scripted agent keeps the last Want and reports what the test says.
type scripted struct {
	t    *testing.T
	conn *pipe
	mu   sync.Mutex
	want agentmessage.Want
}

// connect connects an agent whose key is limited to a service, or to none.
func (s *scene) connect(service, name string, report agentmessage.Report) *scripted {
	s.t.Helper()
	mine, theirs := newPipe()
	a := &scripted{t: s.t, conn: mine}
	go s.hub.ServeAgent(s.t.Context(), theirs, service, name, "192.0.2.1:1000")
	go func() {
		for {
			b, err := mine.Read(s.t.Context())
			if err != nil {
				return
			}
			var m agentmessage.Want
			if json.Unmarshal(b, &m) == nil && m.Type == agentmessage.TypeWant {
				a.mu.Lock()
				a.want = m
				a.mu.Unlock()
			}
		}
	}()
	a.report(report)
	return a
}

func (a *scripted) report(r agentmessage.Report) {
	a.t.Helper()
	r.Type = agentmessage.TypeReport
	b, err := json.Marshal(r)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := a.conn.Write(a.t.Context(), b); err != nil {
		a.t.Fatal(err)
	}
}

// told returns the number of instances of worker w, or -1.
func (a *scripted) told(service string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.want.Workers {
		if w.Service == service && w.Worker == "w" {
			return w.Instances
		}
	}
	return -1
}

func (a *scripted) awaits(n int) {
	a.t.Helper()
	eventually(a.t, fmt.Sprintf("the agent is told %d instances", n), func() bool { return a.told("s") == n })
}

// may is a report of an agent that may run up to n instances of worker w and runs the named ones.
func may(n, cores int, names ...string) agentmessage.Report {
	w := agentmessage.Worker{Service: "s", Worker: "w", MaxInstances: n, Wanted: len(names)}
	for _, name := range names {
		w.Instances = append(w.Instances, agentmessage.Instance{Name: name, State: agentmessage.Running, Version: "1"})
	}
	return agentmessage.Report{Host: "host", Cores: cores, MaxInstances: n, Workers: []agentmessage.Worker{w}}
}

func TestAgentsAreToldWhatTheBrokerDemands(t *testing.T) {
	s := newScene(t)
	small, large := s.connect("", "small", may(4, 2)), s.connect("", "large", may(16, 8))
	small.awaits(0) // with the definition
	s.set(func() { s.demand[named("w")] = 4 })
	large.awaits(4)
	small.awaits(0)
	s.set(func() { s.demand[named("w")] = 20 })
	large.awaits(16)
	small.awaits(4)
	s.set(func() { delete(s.demand, named("w")) })
	large.awaits(0)
	small.awaits(0)
	small.mu.Lock()
	defer small.mu.Unlock()
	if d := small.want.Workers[0].Definition; len(d.Command) != 1 || d.Version != "1" {
		t.Errorf("definition: %+v", d)
	}
}

func TestInstancesOfOthersCount(t *testing.T) {
	s := newScene(t)
	s.set(func() {
		s.demand[named("w")] = 5
		s.connected[named("w")] = []session.InstanceInfo{{Name: "by-hand"}, {Name: "by-hand-2", Draining: true}, {Name: "a-1"}}
	})
	a := s.connect("", "a", may(8, 8, "a-1"))
	a.awaits(4)
	a.mu.Lock()
	if c := a.want.Workers[0].Connected; len(c) != 1 || c[0] != "a-1" {
		t.Errorf("connected: %v", c)
	}
	a.mu.Unlock()
	a.conn.Close(1000, "") // its instance keeps running
	b := s.connect("", "b", may(8, 8))
	b.awaits(3)
}

func TestANewHubReducesNothing(t *testing.T) {
	s := newScene(t)
	s.clock.advance(-settleTime)
	a := s.connect("", "a", may(8, 8, "a-1", "a-2", "a-3"))
	a.awaits(3)
	s.set(func() { s.demand[named("w")] = 6 })
	a.awaits(6)
	s.set(func() { s.demand[named("w")] = 0 })
	a.awaits(3)
	s.clock.advance(settleTime)
	s.hub.Changed()
	a.awaits(0)
}

func TestARefusalIsReportedOnceAndAnotherAgentGetsTheInstances(t *testing.T) {
	s := newScene(t)
	s.set(func() { s.demand[named("w")] = 2 })
	a := s.connect("", "a", may(8, 64))
	a.awaits(2)
	a.mu.Lock()
	digest := a.want.Workers[0].Definition.Digest()
	a.mu.Unlock()
	refusing := may(8, 64)
	refusing.Workers[0].Refusal = &agentmessage.Refusal{Definition: digest, Pointer: "/command", Message: "the file of the agent does not allow the command", Hint: "add it"}
	a.report(refusing)
	a.awaits(0)
	a.report(refusing)
	eventually(t, "a failure", func() bool { return s.hub.Failure("s", "w") != nil })
	if f := s.hub.Failure("s", "w"); f.Code != fanfare.Forbidden || f.Pointer != "/command" || f.Message != "agent a on host host refused worker w: the file of the agent does not allow the command" {
		t.Errorf("failure: %+v", f)
	}
	b := s.connect("", "b", may(2, 1))
	b.awaits(2)
	s.mu.Lock()
	if len(s.refusals) != 1 || s.refusals[0] != (Refusal{"s", "w", "a", "host", "/command", "the file of the agent does not allow the command", "1"}) {
		t.Errorf("refusals: %+v", s.refusals)
	}
	s.mu.Unlock()
	s.set(func() { // another definition
		d := s.definitions[named("w")]
		d.Version = "2"
		s.definitions[named("w")] = d
	})
	a.awaits(2)
	b.awaits(0)
}

func TestACommandThatDiesIsTheFailure(t *testing.T) {
	s := newScene(t)
	s.set(func() { s.demand[named("w")] = 4 })
	a := s.connect("", "a", may(8, 8))
	a.awaits(4)
	if f := s.hub.Failure("s", "w"); f != nil {
		t.Errorf("before the first exit: %v", f)
	}
	dying := may(8, 8)
	dying.Workers[0].Wanted, dying.Workers[0].Failures = 4, manyFailures
	dying.Workers[0].Instances = make([]agentmessage.Instance, 4)
	dying.Workers[0].LastExit = &agentmessage.Exit{Step: "command", Reason: "it exited with code 3", Output: []string{"Traceback", "no module named render"}}
	a.report(dying)
	a.awaits(1)
	eventually(t, "a failure", func() bool { return s.hub.Failure("s", "w") != nil })
	want := "no instance of worker w could start: on host host, the command failed: it exited with code 3; its last output was:\nTraceback\nno module named render"
	if f := s.hub.Failure("s", "w"); f.Code != fanfare.Unavailable || f.Message != want || f.Hint == "" {
		t.Errorf("failure: %+v", f)
	}
	s.set(func() { s.connected[named("w")] = []session.InstanceInfo{{Name: "by-hand"}} })
	eventually(t, "no failure", func() bool { return s.hub.Failure("s", "w") == nil })
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.failures); n < 2 || s.failures[n-2] != "s/w: "+want || s.failures[n-1] != "s/w: works" {
		t.Errorf("failures: %q", s.failures)
	}
}

func TestWithoutAgentsTheFailureSaysSo(t *testing.T) {
	s := newScene(t)
	s.set(func() { s.demand[named("w")] = 1 })
	eventually(t, "a failure", func() bool { return s.hub.Failure("s", "w") != nil })
	if f := s.hub.Failure("s", "w"); !strings.HasPrefix(f.Message, "no connected agent is allowed to run worker w of service s") {
		t.Errorf("failure: %+v", f)
	}
	s.set(func() { s.definitions[named("w")] = session.Definition{Service: "s", Name: "w"} }) // people start it
	eventually(t, "no failure", func() bool { return s.hub.Failure("s", "w") == nil })
}

func TestAKeyOfOneServiceSeesNothingOfOthers(t *testing.T) {
	s := newScene(t)
	other := key{"other", "w"}
	s.set(func() {
		s.demand[named("w")], s.demand[other] = 1, 1
		s.definitions[other] = session.Definition{Service: "other", Name: "w", Command: []string{"/bin/w"}}
	})
	both := may(8, 8)
	both.Workers = append(both.Workers, agentmessage.Worker{Service: "other", Worker: "w", MaxInstances: 8})
	a := s.connect("other", "a", both)
	eventually(t, "the worker of its service", func() bool { return a.told("other") == 1 })
	if n := a.told("s"); n != -1 {
		t.Errorf("the agent of one service is told %d instances of another one", n)
	}
	shared := s.connect("", "b", both)
	shared.awaits(1)
	if infos := s.hub.Agents("s"); len(infos) != 1 || infos[0].Name != "b" || len(infos[0].Workers) != 1 || infos[0].Workers[0].Service != "s" {
		t.Errorf("agents that service s sees: %+v", infos)
	}
	if infos := s.hub.Agents(""); len(infos) != 2 || len(infos[1].Workers) != 2 || infos[0].Service != "other" || infos[0].Remote != "192.0.2.1:1000" {
		t.Errorf("all agents: %+v", infos)
	}
}

func TestASecondConnectionReplacesTheFirst(t *testing.T) {
	s := newScene(t)
	first := s.connect("", "a", may(1, 1))
	first.awaits(0)
	second := s.connect("", "a", may(1, 1))
	second.awaits(0)
	<-first.conn.ended.Done()
	if err := context.Cause(first.conn.ended); err.Error() != "closed with 4001: another agent with this name has connected" {
		t.Errorf("the first connection: %v", err)
	}
	if n := len(s.hub.Agents("")); n != 1 {
		t.Errorf("%d agents", n)
	}
}

func TestAnAgentThatSendsNoReportIsRefused(t *testing.T) {
	for _, text := range []string{"{", `{"type":"want"}`, `[]`} {
		s := newScene(t)
		mine, theirs := newPipe()
		result := make(chan error, 1)
		go func() { result <- s.hub.ServeAgent(t.Context(), theirs, "", "a", "") }()
		if err := mine.Write(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
		b, err := mine.Read(t.Context())
		var p agentmessage.Problem
		if err != nil || json.Unmarshal(b, &p) != nil || p.Type != agentmessage.TypeProblem || p.Code != "invalid" {
			t.Errorf("%s: %s, %v", text, b, err)
		}
		if err := <-result; fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("%s: %v", text, err)
		}
		<-mine.ended.Done()
		if err := context.Cause(mine.ended); !strings.HasPrefix(err.Error(), "closed with 4000: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestServeAgentEndsWithItsContext(t *testing.T) {
	s := newScene(t)
	ctx, stop := context.WithCancel(t.Context())
	mine, theirs := newPipe()
	result := make(chan error, 1)
	go func() { result <- s.hub.ServeAgent(ctx, theirs, "", "a", "") }()
	stop()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("ServeAgent: %v", err)
	}
	if err := context.Cause(mine.ended); err == nil || !strings.HasPrefix(err.Error(), "closed with 1001: ") {
		t.Errorf("the connection: %v", err)
	}
}
