// Package agent starts the instances of workers on one machine. The server says how many instances of which worker it wants
// (package fleet), and the local file of the agent decides what may run (Config). The agent starts a process for each wanted
// instance, starts it again after a failure with a growing pause, replaces it when the definition changes, and lets it finish
// its tasks before it ends. A lost connection to the server changes nothing: the instances keep running. A dead agent takes its
// processes with it on Linux.
//
// One goroutine, Run, owns the whole state. Other goroutines pass it functions with do.
package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/agentmessage"
)

// Options describe an agent.
type Options struct {
	Config    *Config
	URL       string                                          // of the server, for the instances
	WorkerKey string                                          // for the instances
	Version   string                                          // of the program
	Dial      func(ctx context.Context) (session.Conn, error) // connects to the server as this agent
	Output    io.Writer                                       // receives the lines that instances print; nil: nobody
	Logger    *slog.Logger
}

// The pauses after a failure, and how long a process must run to count as healthy.
const (
	firstPause   = time.Second
	longestPause = time.Minute
	healthyAfter = time.Minute
	stepTimeout  = 10 * time.Minute // of prepare and release
)

// An Agent starts instances.
type Agent struct {
	o       Options
	host    string
	run     string // distinguishes the instances of this process from those of earlier ones
	output  io.Writer
	starter *starter
	events  chan func()
	done    chan struct{}

	firstPause, longestPause, healthyAfter, memoryInterval time.Duration

	// The state, which belongs to Run.
	workers  map[key]*worker
	number   int // of the last instance
	stopping bool
	online   *connection
	onlineAt time.Time
}

type key struct{ service, worker string }

// A worker is what the agent runs of one worker.
type worker struct {
	key       key
	rule      *Rule
	wanted    int
	launch    *launch   // of the current definition; nil: none or refused
	launches  []*launch // also those of earlier definitions that still have processes or must be released
	slots     []*slot
	processes map[*process]bool // all that run, of all steps
	lastExit  *agentmessage.Exit
	refusal   *agentmessage.Refusal
	reported  string // definition whose refusal was logged
}

// A slot is the place of one wanted instance.
type slot struct {
	launch    *launch
	process   *process
	failures  int
	notBefore time.Time
}

// New returns an agent that Run starts.
func New(o Options) (*Agent, error) {
	host, err := os.Hostname()
	if err != nil {
		host = o.Config.Name
	}
	a := &Agent{o: o, host: host, run: strconv.FormatUint(rand.Uint64N(36*36*36*36), 36), events: make(chan func()), done: make(chan struct{}), workers: map[key]*worker{},
		firstPause: firstPause, longestPause: longestPause, healthyAfter: healthyAfter, memoryInterval: time.Second}
	if o.Output != nil {
		a.output = &lockedWriter{w: o.Output}
	}
	for i := range o.Config.Workers {
		r := &o.Config.Workers[i]
		k := key{r.Service, r.Worker}
		a.workers[k] = &worker{key: k, rule: r, processes: map[*process]bool{}}
	}
	return a, nil
}

// Run works until ctx ends. It then lets all instances finish and returns. It returns an error at once if the server refuses
// the first connection for a reason that lasts, such as a wrong key.
func (a *Agent) Run(ctx context.Context) error {
	a.starter = newStarter()
	defer a.starter.stop()
	defer close(a.done)
	connected, disconnect := context.WithCancel(context.WithoutCancel(ctx))
	defer disconnect()
	refused := make(chan error, 1)
	go func() {
		if err := a.stayConnected(connected); err != nil {
			refused <- err
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	stop, fatal := ctx.Done(), error(nil)
	for {
		next := a.reconcile(time.Now())
		a.report()
		if a.stopping && !a.busy() {
			a.flush()
			return fatal
		}
		timer.Reset(time.Until(next))
		select {
		case event := <-a.events:
			event()
		case <-timer.C:
		case fatal = <-refused:
			a.stopping = true
		case <-stop:
			stop, a.stopping = nil, true
			a.o.Logger.Info("stopping: waiting until the instances have finished their tasks")
		}
	}
}

// do has Run call a function.
func (a *Agent) do(event func()) {
	select {
	case a.events <- event:
	case <-a.done:
	}
}

func (a *Agent) busy() bool {
	for _, w := range a.workers {
		if len(w.processes) > 0 || slices.ContainsFunc(w.launches, func(l *launch) bool { return l.step != unprepared && len(l.release) > 0 }) {
			return true
		}
	}
	return false
}

// want takes over what the server wants.
func (a *Agent) want(m *agentmessage.Want) {
	wanted := map[key]*agentmessage.WantWorker{}
	for i := range m.Workers {
		w := &m.Workers[i]
		k := key{w.Service, w.Worker}
		wanted[k] = w
		if a.workers[k] == nil {
			a.o.Logger.Warn("refused a worker that the agent's file does not list", "service", w.Service, "worker", w.Worker)
			a.workers[k] = &worker{key: k, rule: &Rule{Service: w.Service, Worker: w.Worker}, processes: map[*process]bool{}}
		}
	}
	now := time.Now()
	for k, w := range a.workers {
		m := wanted[k]
		if m == nil {
			w.wanted, w.refusal, w.reported = 0, nil, ""
			continue
		}
		w.wanted = m.Instances
		for p := range w.processes {
			if !p.connected && p.step == stepCommand && slices.Contains(m.Connected, p.name) {
				p.connected = true
				a.o.Logger.Info("an instance is connected", "worker", k.worker, "instance", p.name)
			}
		}
		w.define(&m.Definition, now)
		if w.refusal != nil && w.reported != w.refusal.Definition {
			w.reported = w.refusal.Definition
			a.o.Logger.Warn("refused the definition of a worker", "service", k.service, "worker", k.worker, "field", w.refusal.Pointer, "reason", w.refusal.Message)
		}
	}
}

// The steps of a process.
const (
	stepPrepare = "prepare"
	stepCommand = "command"
	stepRelease = "release"
)

// define takes over a definition. A refused one leaves the instances of the earlier definition as they are.
func (w *worker) define(d *agentmessage.Definition, now time.Time) {
	digest := d.Digest()
	if w.launch != nil && w.launch.digest == digest {
		w.launch.setTimeouts(d)
		w.refusal = nil
		return
	}
	if i := slices.IndexFunc(w.launches, func(l *launch) bool { return l.digest == digest }); i >= 0 {
		w.launch, w.refusal = w.launches[i], nil
		w.launch.setTimeouts(d)
		return
	}
	l, refusal := w.rule.allow(d, now.UTC())
	if refusal != nil {
		if w.refusal == nil || w.refusal.Definition != digest {
			w.refusal = refusal
		}
		return
	}
	w.launch, w.refusal, w.launches = l, nil, append(w.launches, l)
}

// reconcile starts and ends processes until they are as wanted. It returns the time of its next call.
func (a *Agent) reconcile(now time.Time) time.Time {
	next := now.Add(time.Hour)
	soon := func(at time.Time) {
		if at.Before(next) {
			next = at
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(a.workers), compareKeys) {
		w := a.workers[k]
		a.adjust(w, now)
		for p := range w.processes {
			a.watch(p, now, soon)
		}
		for _, s := range w.slots {
			if s.process == nil {
				a.fill(w, s, now, soon)
			}
		}
		a.release(w, now)
	}
	return next
}

func compareKeys(a, b key) int {
	if a.service != b.service {
		return compareText(a.service, b.service)
	}
	return compareText(a.worker, b.worker)
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// watch kills a process that has not connected or has not ended in time.
func (a *Agent) watch(p *process, now time.Time, soon func(time.Time)) {
	switch {
	case p.killed != "":
	case !p.killAt.IsZero():
		if !now.Before(p.killAt) {
			a.kill(p, fmt.Sprintf("it had not ended %s after the signal to stop", p.launch.stopTimeout))
			return
		}
		soon(p.killAt)
	case p.step == stepCommand && !p.connected && a.online != nil:
		deadline := p.startedAt.Add(p.launch.startTimeout)
		if again := a.onlineAt.Add(p.launch.startTimeout); again.After(deadline) { // the server could not be reached
			deadline = again
		}
		if !now.Before(deadline) {
			a.kill(p, fmt.Sprintf("it had not connected to the server %s after its start", p.launch.startTimeout))
			return
		}
		soon(deadline)
	case p.step != stepCommand:
		deadline := p.startedAt.Add(stepTimeout)
		if !now.Before(deadline) {
			a.kill(p, fmt.Sprintf("it had not ended %s after its start", stepTimeout))
			return
		}
		soon(deadline)
	}
}

// adjust makes and drains slots. Instances of an earlier definition are replaced one after the other: an old one drains when
// a new one is connected.
func (a *Agent) adjust(w *worker, now time.Time) {
	total := w.wanted
	if a.stopping {
		total = 0
	}
	total = min(total, w.rule.MaxInstances)
	var current, old []*slot
	connected := 0
	for _, s := range w.slots {
		switch {
		case w.launch == nil || s.launch == w.launch:
			current = append(current, s)
			if s.process != nil && s.process.connected {
				connected++
			}
		case s.process != nil:
			old = append(old, s)
		}
	}
	for len(old) > 0 && len(old)+connected > total {
		a.drain(old[len(old)-1])
		old = old[:len(old)-1]
	}
	want := total
	if len(old) > 0 {
		want = min(total, connected+1)
	}
	for len(current) < want && w.launch != nil && w.refusal == nil {
		current = append(current, &slot{launch: w.launch, notBefore: now})
	}
	for len(current) > want && len(current) > 0 {
		i := leastUseful(current)
		a.drain(current[i])
		current = slices.Delete(current, i, i+1)
	}
	w.slots = append(current, old...)
}

// leastUseful returns the slot to give up: one without a process, else one that is not connected, else the newest.
func leastUseful(slots []*slot) int {
	rank := func(s *slot) int {
		switch {
		case s.process == nil:
			return 2
		case !s.process.connected:
			return 1
		}
		return 0
	}
	best := 0
	for i, s := range slots {
		if rank(s) >= rank(slots[best]) {
			best = i
		}
	}
	return best
}

func (a *Agent) drain(s *slot) {
	if s.process != nil {
		a.o.Logger.Info("draining an instance", "instance", s.process.name)
		a.terminate(s.process)
	}
}

// fill starts the process of a slot if its host is prepared, its pause has passed and there is capacity.
func (a *Agent) fill(w *worker, s *slot, now time.Time, soon func(time.Time)) {
	l := s.launch
	switch {
	case l.step == unprepared && len(l.prepare) == 0:
		l.step = ready
	case l.step == unprepared:
		if now.Before(l.notBefore) {
			soon(l.notBefore)
			return
		}
		a.prepare(w, l)
	}
	if l.step != ready {
		return
	}
	if now.Before(s.notBefore) {
		soon(s.notBefore)
		return
	}
	extra := 0
	if slices.ContainsFunc(w.slots, func(o *slot) bool { return o.launch != l }) {
		extra = 1 // a new instance replaces an old one, which ends afterwards
	}
	if w.commands() >= w.rule.MaxInstances+extra || a.commands() >= a.o.Config.MaxInstances+extra {
		return // until a draining instance has ended
	}
	a.number++
	name := a.o.Config.Name + "-" + a.run + "-" + strconv.Itoa(a.number)
	p, err := a.launchProcess(w, l, stepCommand, name, l.command, a.instanceEnded(w, s))
	if err != nil {
		w.lastExit = &agentmessage.Exit{Instance: name, Step: stepCommand, At: now.UTC(), Reason: "it could not be started: " + err.Error()}
		a.o.Logger.Error("an instance could not be started", "worker", w.key.worker, "instance", name, "error", err)
		a.pause(s, now)
		soon(s.notBefore)
		return
	}
	s.process = p
	w.processes[p] = true
	a.o.Logger.Info("started an instance", "service", w.key.service, "worker", w.key.worker, "instance", name, "pid", p.cmd.Process.Pid, "version", l.version)
	soon(now) // for the deadline of the start
}

// pause sets the time of the next start after a failure.
func (a *Agent) pause(s *slot, now time.Time) {
	s.failures++
	s.notBefore = now.Add(a.pauseAfter(s.failures))
}

func (a *Agent) pauseAfter(failures int) time.Duration {
	return min(a.longestPause, a.firstPause<<min(failures-1, 10))
}

func (w *worker) commands() (n int) {
	for p := range w.processes {
		if p.step == stepCommand {
			n++
		}
	}
	return n
}

func (a *Agent) commands() (n int) {
	for _, w := range a.workers {
		n += w.commands()
	}
	return n
}

// instanceEnded returns the function that handles the end of an instance.
func (a *Agent) instanceEnded(w *worker, s *slot) func(*process, error) {
	return func(p *process, err error) {
		now := time.Now()
		delete(w.processes, p)
		exit := exitOf(p, err)
		if p.draining && p.killed == "" {
			a.o.Logger.Info("an instance has ended", "worker", w.key.worker, "instance", p.name)
		} else {
			w.lastExit = exit
			a.o.Logger.Error("an instance has died", "service", w.key.service, "worker", w.key.worker, "instance", p.name, "reason", exit.Reason)
		}
		if s.process == p && !p.draining {
			s.process = nil
			if now.Sub(p.startedAt) >= a.healthyAfter {
				s.failures = 0
			}
			a.pause(s, now)
		}
	}
}

// prepare runs the prepare command of a definition.
func (a *Agent) prepare(w *worker, l *launch) {
	fail := func(exit *agentmessage.Exit) {
		l.step, w.lastExit = unprepared, exit
		l.failures++
		l.notBefore = time.Now().Add(a.pauseAfter(l.failures))
		a.o.Logger.Error("the prepare command has failed", "service", w.key.service, "worker", w.key.worker, "reason", exit.Reason)
	}
	l.step = preparing
	a.o.Logger.Info("preparing", "service", w.key.service, "worker", w.key.worker, "version", l.version)
	p, err := a.launchProcess(w, l, stepPrepare, "", l.prepare, func(p *process, err error) {
		delete(w.processes, p)
		if err != nil || p.killed != "" {
			fail(exitOf(p, err))
			return
		}
		l.step, l.failures = ready, 0
	})
	if err != nil {
		fail(&agentmessage.Exit{Step: stepPrepare, At: time.Now().UTC(), Reason: "it could not be started: " + err.Error()})
		return
	}
	w.processes[p] = true
}

// release runs the release command of each definition that has no instance any more, and forgets earlier definitions.
func (a *Agent) release(w *worker, now time.Time) {
	w.launches = slices.DeleteFunc(w.launches, func(l *launch) bool {
		used := slices.ContainsFunc(w.slots, func(s *slot) bool { return s.launch == l })
		for p := range w.processes {
			used = used || p.launch == l
		}
		if used || l.step == releasing || l.step == preparing {
			return false
		}
		if l.step == ready && len(l.release) > 0 {
			a.startRelease(w, l, now)
			return false
		}
		l.step = unprepared
		return l != w.launch
	})
}

func (a *Agent) startRelease(w *worker, l *launch, now time.Time) {
	fail := func(exit *agentmessage.Exit) {
		w.lastExit = exit
		a.o.Logger.Error("the release command has failed", "service", w.key.service, "worker", w.key.worker, "reason", exit.Reason)
	}
	l.step = releasing
	a.o.Logger.Info("releasing", "service", w.key.service, "worker", w.key.worker, "version", l.version)
	p, err := a.launchProcess(w, l, stepRelease, "", l.release, func(p *process, err error) {
		delete(w.processes, p)
		l.step = unprepared
		if err != nil || p.killed != "" {
			fail(exitOf(p, err))
		}
	})
	if err != nil {
		l.step = unprepared
		fail(&agentmessage.Exit{Step: stepRelease, At: now.UTC(), Reason: "it could not be started: " + err.Error()})
		return
	}
	w.processes[p] = true
}
