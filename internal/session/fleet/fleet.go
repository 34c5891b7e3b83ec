// Package fleet is the server's side of agents: it tells each connected agent how many instances of which workers to run.
// A Hub compares the demand of the broker with the instances that the agents report, once a second and whenever something
// changes, and sends each agent the complete list of its instances. It keeps nothing: after a take-over, the agents connect
// to the new leader and report what they run. For half a minute after its start, a Hub therefore reduces nothing.
package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/agentmessage"
)

// Options connect a Hub to the broker and the configuration.
type Options struct {
	Demand     func() []session.Demand                                 // of all workers with open sessions
	Definition func(service, worker string) (session.Definition, bool) // the registration in force
	Instances  func(service, worker string) []session.InstanceInfo     // that are connected to the broker
	Refused    func(Refusal)                                           // writes an audit record; nil: none
	Failed     func(service, worker string, reason *fanfare.Error)     // no instance can start, nil reason: it can again; nil: nobody is told
	Clock      clock.Clock
	Logger     *slog.Logger
}

// A Refusal says that the local file of an agent does not allow what the configuration says.
type Refusal struct {
	Service, Worker string
	Agent, Host     string
	Pointer         string // field of the definition, such as /command
	Message         string
	Version         string // of the definition
}

// An AgentInfo is what the API and the CLI show of an agent.
type AgentInfo struct {
	Name         string
	Service      string // that its key is limited to; "": none
	Remote       string // address of the connection
	Host         string
	Version      string // of the program
	Cores        int
	MaxInstances int
	Stopping     bool
	ConnectedAt  time.Time
	Workers      []agentmessage.Worker
}

// The periods of a Hub.
const (
	planInterval = time.Second
	settleTime   = 30 * time.Second // after the start, in which nothing is reduced
	manyFailures = 3                // after which an agent gets one instance of the worker only
	maxWorkers   = 1024             // of an agent
)

// A Hub is the server's side of all agents. Its methods are safe for concurrent use.
type Hub struct {
	o         Options
	changed   chan struct{}
	startedAt time.Time

	mu       sync.Mutex
	agents   map[agentKey]*agent
	refused  map[refusedKey]string  // digest of the definition whose refusal was reported
	failures map[key]*fanfare.Error // by worker, from the last plan
}

type (
	key        struct{ service, worker string }
	agentKey   struct{ service, name string }
	refusedKey struct {
		agent agentKey
		key   key
	}
)

// An agent is one connection.
type agent struct {
	key         agentKey
	remote      string
	connectedAt time.Time
	report      *agentmessage.Report // nil until the first one
	last        []byte               // the Want that was sent last
	wants       chan []byte          // only the newest one waits
	end         context.CancelCauseFunc
}

// New returns a Hub, which works while Run does.
func New(o Options) *Hub {
	return &Hub{o: o, changed: make(chan struct{}, 1), startedAt: o.Clock.Now(), agents: map[agentKey]*agent{}, refused: map[refusedKey]string{}, failures: map[key]*fanfare.Error{}}
}

// Changed has the Hub look at the demand at once. It does not block.
func (h *Hub) Changed() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// Run tells the agents what to run until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	ticker := time.NewTicker(planInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-h.changed:
		}
		h.plan()
	}
}

// errReplaced ends the connection of an agent when another one has the same name.
var errReplaced = &fanfare.Error{Code: fanfare.Conflict, Message: "another agent with this name has connected", Hint: "give each agent a different name"}

// ServeAgent serves the connection of an agent until it ends. service is the one that the key of the agent is limited to, or "".
// It closes conn.
func (h *Hub) ServeAgent(ctx context.Context, conn session.Conn, service, name, remote string) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &agent{key: agentKey{service, name}, remote: remote, connectedAt: h.o.Clock.Now(), wants: make(chan []byte, 1), end: end}
	h.enter(a)
	defer h.leave(a)
	log := h.o.Logger.With("agent", name, "remote", remote)
	log.Info("an agent has connected")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end(a.write(ctx, conn))
		h.close(conn, context.Cause(ctx)) // which ends receive, too
	}()
	end(h.receive(conn, a))
	<-ended
	err := context.Cause(ctx)
	log.Info("an agent has disconnected", "reason", err)
	return err
}

// writeTimeout is how long an agent may take to receive a message.
const writeTimeout = 10 * time.Second

// write sends the newest Want until ctx ends. Its writes do not end with ctx, because an interrupted write would close the
// connection without a reason.
func (a *agent) write(ctx context.Context, conn session.Conn) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case want := <-a.wants:
			if err := writeOne(ctx, conn, want); err != nil {
				return err
			}
		}
	}
}

func writeOne(ctx context.Context, conn session.Conn, message []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	return conn.Write(ctx, message)
}

// close tells the agent why the connection ends.
func (h *Hub) close(conn session.Conn, err error) {
	code, reason := session.CloseGoingAway, "the server stops"
	if wrong, ok := err.(*fanfare.Error); ok { //nolint:errorlint // only errors of this package are for the agent
		code, reason = session.CloseInvalid, wrong.Message
		if wrong == errReplaced {
			code = session.CloseReplaced
		}
		if b, err := json.Marshal(agentmessage.Problem{Type: agentmessage.TypeProblem, Code: string(wrong.Code), Message: wrong.Message, Hint: wrong.Hint}); err == nil {
			_ = writeOne(context.Background(), conn, b) // the agent may be gone
		}
	}
	_ = conn.Close(code, reason) // as above
}

func (h *Hub) enter(a *agent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if earlier := h.agents[a.key]; earlier != nil {
		earlier.end(errReplaced)
	}
	h.agents[a.key] = a
}

func (h *Hub) leave(a *agent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agents[a.key] == a {
		delete(h.agents, a.key)
	}
	h.Changed()
}

// receive takes reports until the connection is closed.
func (h *Hub) receive(conn session.Conn, a *agent) error {
	for {
		b, err := conn.Read(context.Background())
		if err != nil {
			return err
		}
		var r agentmessage.Report
		if err := json.Unmarshal(b, &r); err != nil || r.Type != agentmessage.TypeReport {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "the message of the agent is not a report", Hint: "use the same version of the agent and the server"}
		}
		if len(r.Workers) > maxWorkers {
			return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the agent lists %d workers; at most %d are allowed", len(r.Workers), maxWorkers), Hint: "use several agents"}
		}
		if a.key.service != "" {
			r.Workers = slices.DeleteFunc(r.Workers, func(w agentmessage.Worker) bool { return w.Service != a.key.service })
		}
		for i := range r.Workers {
			shorten(r.Workers[i].LastExit)
		}
		h.mu.Lock()
		a.report = &r
		h.mu.Unlock()
		h.tellRefusals(a, &r)
		h.Changed()
	}
}

// shorten limits the output that an agent sends.
func shorten(e *agentmessage.Exit) {
	if e == nil {
		return
	}
	e.Output = e.Output[max(0, len(e.Output)-agentmessage.MaxOutputLines):]
	for i, line := range e.Output {
		if len(line) > 2*agentmessage.MaxLineBytes {
			e.Output[i] = strings.ToValidUTF8(line[:2*agentmessage.MaxLineBytes], "")
		}
	}
}

// tellRefusals logs each refusal once and has it written to the audit log.
func (h *Hub) tellRefusals(a *agent, r *agentmessage.Report) {
	for i := range r.Workers {
		w := &r.Workers[i]
		at := refusedKey{a.key, key{w.Service, w.Worker}}
		h.mu.Lock()
		known := h.refused[at]
		if w.Refusal == nil {
			delete(h.refused, at)
		} else {
			h.refused[at] = w.Refusal.Definition
		}
		h.mu.Unlock()
		if w.Refusal == nil || known == w.Refusal.Definition {
			continue
		}
		version := ""
		if d, ok := h.o.Definition(w.Service, w.Worker); ok {
			version = d.Version
		}
		h.o.Logger.Warn("an agent has refused a worker", "agent", a.key.name, "host", r.Host, "service", w.Service, "worker", w.Worker, "field", w.Refusal.Pointer, "reason", w.Refusal.Message)
		if h.o.Refused != nil {
			h.o.Refused(Refusal{w.Service, w.Worker, a.key.name, r.Host, w.Refusal.Pointer, w.Refusal.Message, version})
		}
	}
}

// sorted returns the agents that have reported, by name.
func (h *Hub) sorted() []*agent {
	var all []*agent
	for _, a := range h.agents {
		if a.report != nil {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *agent) int {
		return cmp.Or(cmp.Compare(a.key.name, b.key.name), cmp.Compare(a.key.service, b.key.service))
	})
	return all
}

// Agents returns the connected agents. A service other than "" sees its own agents and workers only.
func (h *Hub) Agents(service string) []AgentInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	infos := []AgentInfo{}
	for _, a := range h.sorted() {
		r := a.report
		workers := slices.DeleteFunc(slices.Clone(r.Workers), func(w agentmessage.Worker) bool { return service != "" && w.Service != service })
		if service != "" && a.key.service != service && len(workers) == 0 {
			continue
		}
		infos = append(infos, AgentInfo{a.key.name, a.key.service, a.remote, r.Host, r.Version, r.Cores, r.MaxInstances, r.Stopping, a.connectedAt, workers})
	}
	return infos
}

// Failure says why no instance of a worker can start although one is wanted. It returns nil if an instance is connected, or
// may still start.
func (h *Hub) Failure(service, worker string) *fanfare.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failures[key{service, worker}]
}

// A wanted worker is an entry of the plan.
type wantedWorker struct {
	demand     demand
	definition session.Definition
	digest     string
	connected  map[string]bool // names of the instances at the broker that do not drain
}

// plan decides what each agent runs, and tells the agents for which that has changed.
func (h *Hub) plan() {
	demands := h.o.Demand()
	h.mu.Lock()
	agents := h.sorted()
	workers := h.wanted(demands, agents)
	hosts := make([]host, len(agents))
	for i, a := range agents {
		hosts[i] = hostOf(a, workers)
	}
	list := make([]demand, len(workers))
	for i := range workers {
		list[i] = workers[i].demand
	}
	for i, counts := range allocate(list, hosts) {
		agents[i].send(counts, workers)
	}
	failures := map[key]*fanfare.Error{}
	for i := range workers {
		w := &workers[i]
		if w.demand.instances > 0 && len(w.connected) == 0 {
			if reason := h.failure(w, agents); reason != nil {
				failures[w.demand.key] = reason
			}
		}
	}
	earlier := h.failures
	h.failures = failures
	h.mu.Unlock()
	h.tellFailures(earlier, failures)
}

func (h *Hub) tellFailures(earlier, now map[key]*fanfare.Error) {
	if h.o.Failed == nil {
		return
	}
	for k, reason := range now {
		if before := earlier[k]; before == nil || before.Error() != reason.Error() {
			h.o.Failed(k.service, k.worker, reason)
		}
	}
	for k := range earlier {
		if now[k] == nil {
			h.o.Failed(k.service, k.worker, nil)
		}
	}
}

// settling reports whether agents may not have connected yet because the Hub is new.
func (h *Hub) settling() bool { return h.o.Clock.Now().Before(h.startedAt.Add(settleTime)) }

// wanted returns the workers that agents can start, with the number of instances that agents should run.
func (h *Hub) wanted(demands []session.Demand, agents []*agent) []wantedWorker {
	settling := h.settling()
	counts := map[key]int{}
	for _, d := range demands {
		counts[key{d.Service, d.Worker}] += d.Instances
	}
	running := map[key]map[string]bool{} // all instances of agents
	active := map[key]int{}              // those that do not drain
	for _, a := range agents {
		for i := range a.report.Workers {
			w := &a.report.Workers[i]
			k := key{w.Service, w.Worker}
			if running[k] == nil {
				running[k] = map[string]bool{}
			}
			for _, instance := range w.Instances {
				if instance.Name != "" {
					running[k][instance.Name] = true
				}
			}
			active[k] += current(w)
			if _, known := counts[k]; !known {
				counts[k] = 0
			}
		}
	}
	var workers []wantedWorker
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.worker, b.worker))
	}) {
		d, exists := h.o.Definition(k.service, k.worker)
		if !exists || len(d.Command) == 0 {
			continue
		}
		message := agentmessage.DefinitionOf(&d)
		w := wantedWorker{demand{k, counts[k], max(1, d.Concurrency)}, d, message.Digest(), map[string]bool{}}
		foreign := 0 // instances that people started, or agents that are not connected
		for _, instance := range h.o.Instances(k.service, k.worker) {
			if instance.Draining {
				continue
			}
			w.connected[instance.Name] = true
			if !running[k][instance.Name] {
				foreign++
			}
		}
		w.demand.instances = max(0, w.demand.instances-foreign)
		if settling {
			w.demand.instances = max(w.demand.instances, active[k])
		}
		workers = append(workers, w)
	}
	return workers
}

// current returns the number of places that an agent has for a worker.
func current(w *agentmessage.Worker) (n int) {
	for _, i := range w.Instances {
		if i.State != agentmessage.Draining {
			n++
		}
	}
	return min(n, w.Wanted) // an instance that replaces another one is not a further place
}

// hostOf returns the capacity of an agent. An agent that refuses a definition keeps the instances of the earlier one. An agent on
// which a worker fails again and again tries one instance, so that the others are started elsewhere.
func hostOf(a *agent, workers []wantedWorker) host {
	h := host{name: a.key.name, cores: max(1, a.report.Cores), max: a.report.MaxInstances, workers: map[key]capacity{}}
	if a.report.Stopping {
		h.max = 0
	}
	for i := range workers {
		k := workers[i].demand.key
		if a.key.service != "" && a.key.service != k.service {
			continue
		}
		w := a.worker(k)
		if w == nil {
			continue
		}
		r := capacity{max: w.MaxInstances, current: current(w)}
		switch {
		case w.Refusal != nil && w.Refusal.Definition == workers[i].digest:
			r.max = min(r.max, r.current)
			if running(w) == 0 {
				r.max = 0
			}
		case w.Failures >= manyFailures:
			r.max = min(r.max, 1)
		}
		h.workers[k] = r
	}
	return h
}

// running returns the number of processes that do not drain.
func running(w *agentmessage.Worker) (n int) {
	for _, i := range w.Instances {
		if i.Name != "" && i.State != agentmessage.Draining {
			n++
		}
	}
	return n
}

func (a *agent) worker(k key) *agentmessage.Worker {
	i := slices.IndexFunc(a.report.Workers, func(w agentmessage.Worker) bool { return w.Service == k.service && w.Worker == k.worker })
	if i < 0 || a.report.Workers[i].MaxInstances <= 0 {
		return nil
	}
	return &a.report.Workers[i]
}

// send tells an agent its instances, unless it knows them. The list has each worker that the agent may run, also without
// instances, so that the agent refuses a definition when it is made and not when it is needed.
func (a *agent) send(counts map[key]int, workers []wantedWorker) {
	want := agentmessage.Want{Type: agentmessage.TypeWant, Workers: []agentmessage.WantWorker{}}
	for i := range workers {
		w := &workers[i]
		k := w.demand.key
		reported := a.worker(k)
		if reported == nil || a.key.service != "" && a.key.service != k.service {
			continue
		}
		entry := agentmessage.WantWorker{Service: k.service, Worker: k.worker, Instances: counts[k], Definition: agentmessage.DefinitionOf(&w.definition)}
		for _, instance := range reported.Instances {
			if instance.Name != "" && w.connected[instance.Name] {
				entry.Connected = append(entry.Connected, instance.Name)
			}
		}
		want.Workers = append(want.Workers, entry)
	}
	b, err := json.Marshal(want)
	if err != nil {
		panic(err) // strings, numbers, lists and maps of strings have a JSON form
	}
	if bytes.Equal(b, a.last) {
		return
	}
	a.last = b
	select {
	case <-a.wants:
	default:
	}
	a.wants <- b
}

// failure says why no instance of a worker has started, or returns nil if one may still start.
func (h *Hub) failure(w *wantedWorker, agents []*agent) *fanfare.Error {
	k := w.demand.key
	var refused, failed *fanfare.Error
	allowed := 0
	for _, a := range agents {
		m := a.worker(k)
		if m == nil || a.report.Stopping {
			continue
		}
		allowed++
		switch {
		case m.Refusal != nil && m.Refusal.Definition == w.digest:
			refused = &fanfare.Error{Code: fanfare.Forbidden, Pointer: m.Refusal.Pointer, Message: fmt.Sprintf("agent %s on host %s refused worker %s: %s", a.key.name, a.report.Host, k.worker, m.Refusal.Message), Hint: m.Refusal.Hint}
		case m.Failures > 0 && m.LastExit != nil:
			message := fmt.Sprintf("no instance of worker %s could start: on host %s, the %s failed: %s", k.worker, a.report.Host, stepName(m.LastExit.Step), m.LastExit.Reason)
			if len(m.LastExit.Output) > 0 {
				message += "; its last output was:\n" + strings.Join(m.LastExit.Output, "\n")
			}
			failed = &fanfare.Error{Code: fanfare.Unavailable, Message: message, Hint: "correct the command of the worker, or the host of agent " + a.key.name + "; the agent tries again"}
		default:
			return nil
		}
	}
	switch {
	case failed != nil:
		return failed
	case refused != nil:
		return refused
	case allowed == 0 && !h.settling():
		return &fanfare.Error{Code: fanfare.Unavailable, Message: fmt.Sprintf("no connected agent is allowed to run worker %s of service %s", k.worker, k.service),
			Hint: "start `fanfare workers` with a file that lists the worker, or start an instance yourself"}
	}
	return nil
}

func stepName(step string) string {
	if step == "prepare" {
		return "prepare command"
	}
	return "command"
}
