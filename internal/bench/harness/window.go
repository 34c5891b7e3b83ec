package harness

import (
	"syscall"
	"time"

	"fanfare.dev/fanfare/internal/bench/report"
)

// A window is the time while the clock runs, as the processes see it.
type window struct {
	machine cpuTimes
	own     time.Duration
	server  *Server
	began   processUsage
	post    *Sink // nil where no other process takes the mail
	taken   processUsage
}

func (s *Server) OpenWindow(p *Sink) window {
	w := window{machine: ReadCPUTimes(), own: OwnCPU(), server: s, began: s.Used(), post: p}
	if p != nil {
		w.taken = p.Usage()
	}
	return w
}

// A WindowUsage is what was taken in a window.
type WindowUsage struct {
	Server, Sink time.Duration // CPU
	PeakMiB      float64       // of the server
	others       float64       // share of the machine that something else took
}

// add sums up windows that do not overlap.
func (t *WindowUsage) Add(o WindowUsage) {
	t.Server += o.Server
	t.Sink += o.Sink
	t.PeakMiB = max(t.PeakMiB, o.PeakMiB)
	t.others = max(t.others, o.others)
}

func (w window) Close() WindowUsage {
	now := w.server.Used()
	t := WindowUsage{Server: now.CPUSince(w.began), PeakMiB: now.PeakMiB}
	if w.post != nil {
		t.Sink = w.post.Usage().CPUSince(w.taken)
	}
	t.others = ReadCPUTimes().others(w.machine, t.Server+t.Sink+OwnCPU()-w.own)
	return t
}

// OwnCPU is what this process has taken.
func OwnCPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// RecordUsage fills in what a window took.
func RecordUsage(r *report.Record, t WindowUsage) {
	r.CPUSeconds, r.RSSMiB = t.Server.Seconds(), t.PeakMiB
	if r.OnPostgreSQL() {
		r.Others = t.others
		r.Note("PostgreSQL, and whatever else runs there, took %.0f %% of the machine while the clock ran", 100*t.others)
	} else {
		noteOthers(r, t.others)
	}
}

// noteOthers says so where the machine was not ours.
func noteOthers(r *report.Record, share float64) {
	r.Others = max(r.Others, share)
	if share > 0.05 {
		r.Note("something else took %.0f %% of the machine while the clock ran: CPU can be compared, times cannot", 100*share)
	}
}
