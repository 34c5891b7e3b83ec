package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/agentmessage"
)

// A bench is an agent and a server that follows a script.
type bench struct {
	t      *testing.T
	agent  *Agent
	stop   context.CancelFunc
	result chan error
	conns  chan *pipe // connections that the agent opens
	wanted chan []byte

	mu      sync.Mutex
	conn    *pipe
	want    agentmessage.WantWorker
	reports []agentmessage.Report
	confirm bool // tell the agent that each instance has connected
}

// start runs an agent that may run everything.
func start(t *testing.T, adjust func(*Agent)) *bench {
	t.Helper()
	self := program(t, "")[:2]
	folder := t.TempDir()
	b := &bench{t: t, result: make(chan error, 1), conns: make(chan *pipe), wanted: make(chan []byte, 1), confirm: true}
	c := &Config{Name: "host", MaxInstances: 8, Workers: []Rule{{Service: "s", Worker: "w", Programs: [][]string{self}, Directories: []string{folder}, Environment: []string{"LANG"}}}}
	if os.Geteuid() == 0 {
		c.Workers[0].User = "root"
	}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{Config: c, URL: "http://127.0.0.1:1", WorkerKey: "secret-key", Version: "test", Logger: slog.New(slog.DiscardHandler), Dial: func(ctx context.Context) (session.Conn, error) {
		mine, theirs := newPipe()
		select {
		case b.conns <- theirs:
			return mine, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	a.firstPause, a.longestPause, a.memoryInterval = 5*time.Millisecond, 20*time.Millisecond, 10*time.Millisecond
	if adjust != nil {
		adjust(a)
	}
	b.agent = a
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	go func() { b.result <- a.Run(ctx) }()
	serving, end := context.WithCancel(context.Background())
	go b.serve(serving)
	t.Cleanup(func() {
		stop()
		select {
		case err := <-b.result:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
			b.result <- err
		case <-time.After(2 * time.Minute):
			t.Error("the agent did not stop")
		}
		end()
	})
	return b
}

// serve is the server: it keeps reports, and confirms that instances have connected.
func (b *bench) serve(ctx context.Context) {
	for {
		select {
		case c := <-b.conns:
			b.mu.Lock()
			b.conn = c
			b.mu.Unlock()
			go func() {
				for {
					select {
					case text := <-b.wanted:
						if c.Write(ctx, text) != nil {
							return
						}
					case <-c.ended.Done():
						return
					case <-ctx.Done():
						return
					}
				}
			}()
			for {
				text, err := c.Read(ctx)
				if err != nil {
					break
				}
				var r agentmessage.Report
				if json.Unmarshal(text, &r) != nil {
					b.t.Errorf("not a report: %s", text)
				}
				b.mu.Lock()
				b.reports = append(b.reports, r)
				var names []string
				for _, i := range r.Workers[0].Instances {
					if i.Name != "" && b.confirm {
						names = append(names, i.Name)
					}
				}
				known := slices.Equal(names, b.want.Connected)
				b.want.Connected = names
				if !known && b.want.Worker != "" {
					b.send()
				}
				b.mu.Unlock()
			}
		case <-ctx.Done():
			return
		}
	}
}

func (b *bench) send() {
	m := agentmessage.Want{Type: agentmessage.TypeWant, Workers: []agentmessage.WantWorker{b.want}}
	text, err := json.Marshal(m)
	if err != nil {
		b.t.Error(err)
	}
	select { // only the newest message waits
	case <-b.wanted:
	default:
	}
	b.wanted <- text
}

// wants tells the agent what to run.
func (b *bench) wants(n int, d agentmessage.Definition) {
	b.t.Helper()
	eventually(b.t, "a connection", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.reports) > 0 })
	b.mu.Lock()
	b.want.Service, b.want.Worker, b.want.Instances, b.want.Definition = "s", "w", n, d
	b.send()
	b.mu.Unlock()
}

func (b *bench) last() agentmessage.Worker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.reports) == 0 {
		return agentmessage.Worker{}
	}
	return b.reports[len(b.reports)-1].Workers[0]
}

// count returns the number of instances in a state in the last report.
func (b *bench) count(state string) (n int) {
	for _, i := range b.last().Instances {
		if i.State == state {
			n++
		}
	}
	return n
}

func (b *bench) awaits(n int, state string) []agentmessage.Instance {
	b.t.Helper()
	eventually(b.t, fmt.Sprintf("%d instances are %s", n, state), func() bool { return b.count(state) == n && len(b.last().Instances) == n })
	return b.last().Instances
}

func TestAnAgentStartsAndDrainsWhatTheServerWants(t *testing.T) {
	b := start(t, nil)
	d := agentmessage.Definition{Command: program(t, "serve"), Version: "1"}
	b.wants(4, d)
	four := b.awaits(4, agentmessage.Running)
	b.wants(2, d)
	two := b.awaits(2, agentmessage.Running)
	for _, i := range two {
		if !slices.Contains(four, i) {
			t.Errorf("instance %s was started anew", i.Name)
		}
	}
	b.wants(0, d)
	b.awaits(0, agentmessage.Running)
	for _, i := range four {
		if exists(i.PID) {
			t.Errorf("process %d still exists", i.PID)
		}
	}
	if exit := b.last().LastExit; exit != nil {
		t.Errorf("a drained instance counts as dead: %+v", exit)
	}
}

func TestAnAgentNeverRunsMoreThanItsFileAllows(t *testing.T) {
	b := start(t, func(a *Agent) { a.workers[key{"s", "w"}].rule.MaxInstances = 3 })
	b.wants(100, agentmessage.Definition{Command: program(t, "serve")})
	b.awaits(3, agentmessage.Running)
}

func TestAnInstanceGetsItsEnvironmentAndFolder(t *testing.T) {
	t.Setenv("FANFARE_KEY", "key of the agent")
	t.Setenv("ORDINARY", "yes")
	b := start(t, nil)
	path := filepath.Join(t.TempDir(), "environment")
	b.wants(1, agentmessage.Definition{Command: program(t, "environment", path), Environment: map[string]string{"LANG": "cy"}})
	name := b.awaits(1, agentmessage.Running)[0].Name
	folder := b.agent.workers[key{"s", "w"}].rule.Directories[0]
	var text []byte
	eventually(t, "the file", func() bool { text, _ = os.ReadFile(path); return strings.Contains(string(text), "FOLDER=") })
	got := strings.Split(string(text), "\n")
	for _, want := range []string{"FANFARE_URL=http://127.0.0.1:1", "FANFARE_KEY=secret-key", "FANFARE_SERVICE=s", "FANFARE_WORKER=w", "FANFARE_INSTANCE=" + name, "LANG=cy", "ORDINARY=yes", "FOLDER=" + folder} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if slices.Contains(got, "FANFARE_KEY=key of the agent") {
		t.Error("the instance has the key of the agent")
	}
}

func TestADeadCommandIsStartedAgainAndItsLastOutputIsReported(t *testing.T) {
	b := start(t, nil)
	b.wants(1, agentmessage.Definition{Command: program(t, "die")})
	eventually(t, "five failures", func() bool { return b.last().Failures >= 5 })
	exit := b.last().LastExit
	if exit.Reason != "it exited with code 3" || exit.Step != "command" || exit.Instance == "" {
		t.Errorf("exit: %+v", exit)
	}
	if n := len(exit.Output); n != agentmessage.MaxOutputLines || exit.Output[n-1] != "no module named render" || exit.Output[n-2] != "line 29 with [key]" {
		t.Errorf("output: %q", exit.Output)
	}
}

func TestThePauseAfterFailuresDoublesUpToAMinute(t *testing.T) {
	a, err := New(Options{Config: &Config{}})
	if err != nil {
		t.Fatal(err)
	}
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1000: time.Minute} {
		if got := a.pauseAfter(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}

func TestAHealthyRunResetsThePause(t *testing.T) {
	b := start(t, func(a *Agent) { a.healthyAfter = 0 })
	b.wants(1, agentmessage.Definition{Command: program(t, "serve")})
	for range 3 { // with the pause of one failure each time
		i := b.awaits(1, agentmessage.Running)[0]
		if err := syscall.Kill(i.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another process", func() bool { return b.count(agentmessage.Running) == 1 && b.last().Instances[0].PID != i.PID })
	}
	for _, r := range b.history() {
		if r.Failures > 1 {
			t.Fatalf("%d failures", r.Failures)
		}
	}
	if exit := b.last().LastExit; exit == nil || exit.Reason != "it was ended by signal 9 (killed)" {
		t.Errorf("exit: %+v", exit)
	}
}

func (b *bench) history() (all []agentmessage.Worker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.reports {
		all = append(all, r.Workers[0])
	}
	return all
}

func TestAnInstanceThatDoesNotEndIsKilledWithItsChildren(t *testing.T) {
	b := start(t, nil)
	path := filepath.Join(t.TempDir(), "pid")
	d := agentmessage.Definition{Command: program(t, "stubborn", path), StopTimeout: 0.05}
	b.wants(1, d)
	main := b.awaits(1, agentmessage.Running)[0].PID
	var helper int
	eventually(t, "the child", func() bool {
		text, _ := os.ReadFile(path)
		helper, _ = strconv.Atoi(strings.TrimSuffix(string(text), "\n"))
		return strings.HasSuffix(string(text), "\n")
	})
	b.wants(0, d)
	eventually(t, "both have ended", func() bool { return !exists(main) && !exists(helper) })
	eventually(t, "the report", func() bool { return b.last().LastExit != nil })
	if exit := b.last().LastExit; exit.Reason != "it was killed: it had not ended 50ms after the signal to stop" {
		t.Errorf("exit: %+v", exit)
	}
}

func TestAnInstanceThatDoesNotConnectIsKilled(t *testing.T) {
	b := start(t, nil)
	b.mu.Lock()
	b.confirm = false
	b.mu.Unlock()
	b.wants(1, agentmessage.Definition{Command: program(t, "serve"), StartTimeout: 0.05})
	eventually(t, "two failures", func() bool { return b.last().Failures >= 2 })
	if exit := b.last().LastExit; exit.Reason != "it was killed: it had not connected to the server 50ms after its start" {
		t.Errorf("exit: %+v", exit)
	}
}

func TestPrepareRunsOncePerVersionAndReleaseAfterTheLastInstance(t *testing.T) {
	b := start(t, nil)
	path := filepath.Join(t.TempDir(), "steps")
	define := func(version string) agentmessage.Definition {
		return agentmessage.Definition{Version: version, Prepare: program(t, "note", path, "prepare "+version), Command: program(t, "note-and-serve", path, "run "+version), Release: program(t, "note", path, "release "+version)}
	}
	steps := func() []string {
		text, _ := os.ReadFile(path)
		return strings.Fields(strings.ReplaceAll(string(text), " ", "-"))
	}
	b.wants(2, define("1"))
	b.awaits(2, agentmessage.Running)
	eventually(t, "two runs", func() bool { return len(steps()) == 3 })
	b.wants(2, define("2"))
	eventually(t, "the release of version 1", func() bool { return slices.Contains(steps(), "release-1") })
	b.awaits(2, agentmessage.Running)
	eventually(t, "two runs of version 2", func() bool { return strings.Count(strings.Join(steps(), " "), "run-2") == 2 })
	b.wants(0, define("2"))
	eventually(t, "the release of version 2", func() bool { return slices.Contains(steps(), "release-2") })
	got := steps()
	count := map[string]int{}
	for _, s := range got {
		count[s]++
	}
	if want := (map[string]int{"prepare-1": 1, "run-1": 2, "release-1": 1, "prepare-2": 1, "run-2": 2, "release-2": 1}); !maps.Equal(count, want) {
		t.Errorf("steps: %v", got)
	}
	if got[0] != "prepare-1" || slices.Index(got, "prepare-2") > slices.Index(got, "run-2") || got[len(got)-1] != "release-2" {
		t.Errorf("order: %v", got)
	}
}

func TestAFailedPrepareStartsNothing(t *testing.T) {
	b := start(t, nil)
	b.wants(1, agentmessage.Definition{Prepare: program(t, "die"), Command: program(t, "serve")})
	eventually(t, "two failures", func() bool { return b.last().Failures >= 2 })
	if exit := b.last().LastExit; exit.Step != "prepare" || exit.Reason != "it exited with code 3" || len(exit.Output) == 0 {
		t.Errorf("exit: %+v", exit)
	}
	for _, w := range b.history() {
		for _, i := range w.Instances {
			if i.PID != 0 {
				t.Fatal("an instance was started")
			}
		}
	}
}

func TestANewVersionReplacesOneInstanceAfterTheOther(t *testing.T) {
	b := start(t, func(a *Agent) { a.workers[key{"s", "w"}].rule.MaxInstances = 3 })
	b.wants(3, agentmessage.Definition{Command: program(t, "serve"), Version: "1"})
	b.awaits(3, agentmessage.Running)
	before := len(b.history())
	b.wants(3, agentmessage.Definition{Command: program(t, "serve"), Version: "2"})
	eventually(t, "three new ones", func() bool {
		l := b.last().Instances
		return len(l) == 3 && !slices.ContainsFunc(l, func(i agentmessage.Instance) bool { return i.Version != "2" || i.State != agentmessage.Running })
	})
	for _, w := range b.history()[before:] {
		running, processes := 0, 0
		for _, i := range w.Instances {
			if i.State == agentmessage.Running {
				running++
			}
			if i.PID != 0 {
				processes++
			}
		}
		if running < 3 || processes > 4 { // one more than allowed, which replaces one
			t.Fatalf("during the replacement: %+v", w.Instances)
		}
	}
}

func TestANewVersionThatDiesLeavesTheOldOne(t *testing.T) {
	b := start(t, nil)
	b.wants(2, agentmessage.Definition{Command: program(t, "serve"), Version: "1"})
	old := b.awaits(2, agentmessage.Running)
	b.mu.Lock()
	b.confirm = false
	b.mu.Unlock()
	b.wants(2, agentmessage.Definition{Command: program(t, "die"), Version: "2"})
	eventually(t, "an exit", func() bool { return b.last().LastExit != nil })
	for _, i := range old {
		if !exists(i.PID) {
			t.Errorf("process %d of the old version has ended", i.PID)
		}
	}
	b.wants(2, agentmessage.Definition{Command: program(t, "not allowed")[2:], Version: "3"})
	eventually(t, "a refusal", func() bool { return b.last().Refusal != nil })
	if n := b.count(agentmessage.Running); n != 2 {
		t.Errorf("%d instances after a refusal", n)
	}
}

func TestInstancesSurviveALostConnection(t *testing.T) {
	b := start(t, nil)
	b.wants(2, agentmessage.Definition{Command: program(t, "serve")})
	before := b.awaits(2, agentmessage.Running)
	b.mu.Lock()
	b.reports = nil
	b.conn.Close(1000, "")
	b.mu.Unlock()
	eventually(t, "a new report", func() bool { return len(b.history()) > 0 })
	if first := b.history()[0]; !slices.Equal(first.Instances, before) || first.Wanted != 2 {
		t.Errorf("after the new connection: %+v, before: %+v", first, before)
	}
}

func TestStopDrainsAllInstances(t *testing.T) {
	b := start(t, nil)
	b.wants(3, agentmessage.Definition{Command: program(t, "serve")})
	all := b.awaits(3, agentmessage.Running)
	b.stop()
	if err := <-b.result; err != nil {
		t.Errorf("Run: %v", err)
	}
	b.result <- nil
	for _, i := range all {
		if exists(i.PID) {
			t.Errorf("process %d still exists", i.PID)
		}
	}
	// The test server may still be reading the last report of the agent.
	eventually(t, "the report of the end", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		last := b.reports[len(b.reports)-1]
		return last.Stopping && len(last.Workers[0].Instances) == 0
	})
	if exit := b.last().LastExit; exit != nil {
		t.Errorf("a drained instance counts as dead: %+v", exit)
	}
}

func TestARefusedFirstConnectionEndsTheAgent(t *testing.T) {
	a, err := New(Options{Config: &Config{Name: "host"}, Logger: slog.New(slog.DiscardHandler), Dial: func(context.Context) (session.Conn, error) {
		return nil, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "unknown or revoked API key"}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Run(t.Context()); fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("Run: %v", err)
	}
}

func TestAProcessAboveItsMemoryLimitIsKilled(t *testing.T) {
	b := start(t, func(a *Agent) { a.workers[key{"s", "w"}].rule.memory = 128 << 20 })
	b.wants(1, agentmessage.Definition{Command: program(t, "hog")})
	eventually(t, "an exit", func() bool { return b.last().LastExit != nil })
	if exit := b.last().LastExit; !strings.Contains(exit.Reason, "the limit is 128 MiB") {
		t.Errorf("exit: %+v", exit)
	}
}

func TestInstancesEndWithAKilledAgent(t *testing.T) {
	argv := program(t, "serve")
	agent := exec.Command(argv[0], append([]string{"child", "agent", "host"}, argv...)...)
	in, err := agent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
	text, err := json.Marshal(agentmessage.Want{Type: agentmessage.TypeWant, Workers: []agentmessage.WantWorker{{Service: "s", Worker: "w", Instances: 2, Definition: agentmessage.Definition{Command: argv}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(append(text, '\n')); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for reports := bufio.NewReader(out); len(pids) < 2; {
		line, err := reports.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		pids = nil
		for _, i := range decode[agentmessage.Report](t, line).Workers[0].Instances {
			if i.PID != 0 {
				pids = append(pids, i.PID)
			}
		}
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the instances have ended", func() bool { return !exists(pids[0]) && !exists(pids[1]) })
}
