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
	others       float64         // share of the machine that anything else took
}

// Add adds the usage of another window that does not overlap.
func (t *WindowUsage) Add(o WindowUsage) {
	t.Server += o.Server
	t.Sink += o.Sink
	t.NATS += o.NATS
	t.Nodes = append(t.Nodes, o.Nodes...)
	t.PeakMiB = max(t.PeakMiB, o.PeakMiB)
	t.others = max(t.others, o.others)
}

func (w Window) Close() WindowUsage {
	now := w.server.Used()
	t := WindowUsage{Server: now.CPUSince(w.began), PeakMiB: now.PeakMiB}
	if w.post != nil {
		t.Sink = w.post.Usage().CPUSince(w.taken)
	}
	ours := t.Server + t.Sink + OwnCPU() - w.own
	for _, n := range w.server.Nodes {
		t.Nodes = append(t.Nodes, n.Used().CPUSince(w.helpers[n.Process]))
		ours += t.Nodes[len(t.Nodes)-1]
	}
	if w.server.NATS != nil {
		t.NATS = w.server.NATS.Used().CPUSince(w.helpers[w.server.NATS])
		ours += t.NATS
	}
	t.others = ReadCPUTimes().others(w.machine, ours)
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
		r.Others = t.others
		r.Note("PostgreSQL and other processes took %.0f %% of the machine while the clock ran", 100*t.others)
	} else {
		noteOthers(r, t.others)
	}
}

// noteOthers records the share of the machine that anything else has taken, with a note
// if it is large.
func noteOthers(r *report.Record, share float64) {
	r.Others = max(r.Others, share)
	if share > 0.05 {
		r.Note("other processes and tenants took %.0f %% of the machine while the clock ran: compare CPU, not times", 100*share)
	}
}
