package harness

import (
	"syscall"
	"time"

	"fanfare.dev/fanfare/internal/bench/report"
)

// A window is the time in which a clock runs, with the usage of the processes at its
// start.
type Window struct {
	machine CPUTimes
	own     time.Duration
	server  *Server
	began   ProcessUsage
	post    *Sink // nil if there is no sink process
	taken   ProcessUsage
	helpers map[*Process]ProcessUsage // NATS and the other nodes, as far as they ran at the start
}

func (s *Server) OpenWindow(p *Sink) Window {
	w := Window{machine: ReadCPUTimes(), own: OwnCPU(), server: s, began: s.Used(), post: p}
	if p != nil {
		w.taken = p.Usage()
	}
	w.helpers = map[*Process]ProcessUsage{}
	for _, n := range s.Nodes {
		w.helpers[n.Process] = n.Used()
	}
	if s.NATS != nil {
		w.helpers[s.NATS] = s.NATS.Used()
	}
	return w
}

// A WindowUsage is the CPU time and memory that the server and the sink have taken in a
// window.
type WindowUsage struct {
	Server, Sink time.Duration   // CPU
	NATS         time.Duration   // CPU of the NATS server in a process of its own
	Nodes        []time.Duration // CPU of the other nodes of the cluster
	PeakMiB      float64         // of the server
	machine      CPUTimes        // of the machine
	ours         time.Duration   // CPU of the experiment
}

// Add adds the usage of another window that does not overlap. The share of others is that
// of all windows together: the kernel counts in ticks of 10 ms, which is more than some
// windows take.
func (t *WindowUsage) Add(o WindowUsage) {
	t.Server += o.Server
	t.Sink += o.Sink
	t.NATS += o.NATS
	t.Nodes = append(t.Nodes, o.Nodes...)
	t.PeakMiB = max(t.PeakMiB, o.PeakMiB)
	t.machine = t.machine.plus(o.machine)
	t.ours += o.ours
}

func (w Window) Close() WindowUsage {
	now := w.server.Used()
	t := WindowUsage{Server: now.CPUSince(w.began), PeakMiB: now.PeakMiB}
	if w.post != nil {
		t.Sink = w.post.Usage().CPUSince(w.taken)
	}
	t.ours = t.Server + t.Sink + OwnCPU() - w.own
	for _, n := range w.server.Nodes {
		t.Nodes = append(t.Nodes, n.Used().CPUSince(w.helpers[n.Process]))
		t.ours += t.Nodes[len(t.Nodes)-1]
	}
	if w.server.NATS != nil {
		t.NATS = w.server.NATS.Used().CPUSince(w.helpers[w.server.NATS])
		t.ours += t.NATS
	}
	t.machine = ReadCPUTimes().since(w.machine)
	return t
}

// OwnCPU returns the CPU time of this process.
func OwnCPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// RecordUsage records the usage of a window.
func RecordUsage(r *report.Record, t WindowUsage) {
	r.CPUSeconds, r.RSSMiB = t.Server.Seconds(), t.PeakMiB
	if r.OnPostgreSQL() {
		r.Others = t.machine.others(t.ours)
		r.Note("PostgreSQL and other processes used %.0f %% of the machine during the measurement", 100*r.Others)
	} else {
		noteOthers(r, t.machine.others(t.ours))
	}
}

// noteOthers records the share of the machine that anything else has taken, with a note
// if it is large.
func noteOthers(r *report.Record, share float64) {
	r.Others = max(r.Others, share)
	if share > 0.05 {
		r.Note("other processes and tenants used %.0f %% of the machine during the measurement: compare CPU, not times", 100*share)
	}
}
