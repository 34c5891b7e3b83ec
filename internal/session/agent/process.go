package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"fanfare.dev/fanfare/internal/session/agentmessage"
)

// A process is one running command.
type process struct {
	launch    *launch
	step      string // prepare, command or release
	name      string // of the instance
	startedAt time.Time
	connected bool      // to the broker
	draining  bool      // it was told to end
	killAt    time.Time // zero: not told to end, or killed
	killed    string    // why it was killed

	cmd    *exec.Cmd
	output *output
}

// A starter starts all processes from one thread, which lives as long as the starter. Linux ends a process with the thread
// that started it, so this must not be a thread that the Go runtime may end.
type starter struct {
	jobs chan func()
	once sync.Once
}

func newStarter() *starter {
	s := &starter{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

func (s *starter) stop() { s.once.Do(func() { close(s.jobs) }) }

func (s *starter) start(cmd *exec.Cmd) (err error) {
	done := make(chan struct{})
	s.jobs <- func() {
		defer close(done)
		err = cmd.Start()
	}
	<-done
	return err
}

// outputDelay is how long the output of a process is read after its end, if a child of it still has it open.
const outputDelay = 2 * time.Second

// command prepares a process. argv[0] is an absolute path, and no shell is involved.
func command(argv, environment []string, directory string, run *identity, out *output) *exec.Cmd {
	cmd := &exec.Cmd{Path: argv[0], Args: argv, Env: environment, Dir: directory, Stdout: out, Stderr: out, WaitDelay: outputDelay}
	separate(cmd, run)
	return cmd
}

// environment returns the variables of a process: those of the agent without FANFARE_*, those of the definition, and those
// that connect the process to the server.
func (a *Agent) environment(l *launch, service, worker, instance string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FANFARE_") {
			env = append(env, v)
		}
	}
	if run := l.rule.run; run != nil {
		env = append(env, "HOME="+run.home, "USER="+run.name, "LOGNAME="+run.name)
	}
	env = append(env, l.environment...)
	env = append(env, "FANFARE_URL="+a.o.URL, "FANFARE_KEY="+a.o.WorkerKey, "FANFARE_SERVICE="+service, "FANFARE_WORKER="+worker)
	if instance != "" {
		env = append(env, "FANFARE_INSTANCE="+instance)
	}
	return env
}

// launchProcess starts a command and reports its end to the loop.
func (a *Agent) launchProcess(w *worker, l *launch, step, name string, argv []string, ended func(*process, error)) (*process, error) {
	label := name
	if label == "" {
		label = w.key.worker + " " + step
	}
	out := &output{prefix: "[" + label + "] ", secret: a.o.WorkerKey, next: a.output}
	p := &process{launch: l, step: step, name: name, startedAt: time.Now(), output: out}
	p.cmd = command(argv, a.environment(l, w.key.service, w.key.worker, name), l.directory, l.rule.run, out)
	if err := a.starter.start(p.cmd); err != nil {
		return nil, err
	}
	if l.rule.memory > 0 {
		a.watchMemory(p)
	}
	go func() {
		err := p.cmd.Wait()
		killGroup(p.cmd.Process.Pid) // the children that it left
		a.do(func() { ended(p, err) })
	}()
	return p, nil
}

// watchMemory kills a process that uses more memory than its limit.
func (a *Agent) watchMemory(p *process) {
	limit := p.launch.rule.memory
	go func() {
		ticker := time.NewTicker(a.memoryInterval)
		defer ticker.Stop()
		for range ticker.C {
			used, exists := residentBytes(p.cmd.Process.Pid)
			if !exists {
				return
			}
			if used > limit {
				a.do(func() {
					a.kill(p, fmt.Sprintf("it used %d MiB of memory; the limit is %d MiB", used>>20, limit>>20))
				})
				return
			}
		}
	}()
}

// terminate tells a process to finish its tasks and end.
func (a *Agent) terminate(p *process) {
	if p.draining {
		return
	}
	p.draining, p.killAt = true, time.Now().Add(p.launch.stopTimeout)
	if err := terminateProcess(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		a.o.Logger.Warn("cannot send a process the signal to stop", "instance", p.name, "error", err)
	}
}

func (a *Agent) kill(p *process, reason string) {
	if p.killed == "" {
		p.killed, p.killAt = reason, time.Time{}
		killGroup(p.cmd.Process.Pid)
	}
}

// exitOf says how a process ended.
func exitOf(p *process, err error) *agentmessage.Exit {
	reason := "it exited with code 0, although it was not told to end"
	var failed *exec.ExitError
	switch {
	case p.killed != "":
		reason = "it was killed: " + p.killed
	case errors.As(err, &failed):
		reason = "it exited with code " + strconv.Itoa(failed.ExitCode())
		if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			reason = "it was ended by signal " + strconv.Itoa(int(status.Signal())) + " (" + status.Signal().String() + ")"
		}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		reason = err.Error()
	}
	return &agentmessage.Exit{Instance: p.name, Step: p.step, At: time.Now().UTC(), Reason: reason, Output: p.output.last()}
}
