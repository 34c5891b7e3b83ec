package bench

import (
	"syscall"
	"time"
)

// A window is the time while the clock runs, as the processes see it.
type window struct {
	machine cpuTimes
	own     time.Duration
	server  *server
	began   usage
	post    *post // nil where no other process takes the mail
	taken   usage
}

func (s *server) openWindow(p *post) window {
	w := window{machine: readCPUTimes(), own: ownCPU(), server: s, began: s.now(), post: p}
	if p != nil {
		w.taken = p.usage()
	}
	return w
}

// A toll is what was taken in a window.
type toll struct {
	server, sink time.Duration // CPU
	peakMiB      float64       // of the server
	others       float64       // share of the machine that something else took
}

// add sums up windows that do not overlap.
func (t *toll) add(o toll) {
	t.server += o.server
	t.sink += o.sink
	t.peakMiB = max(t.peakMiB, o.peakMiB)
	t.others = max(t.others, o.others)
}

func (w window) close() toll {
	now := w.server.now()
	t := toll{server: now.since(w.began), peakMiB: now.peakMiB}
	if w.post != nil {
		t.sink = w.post.usage().since(w.taken)
	}
	t.others = readCPUTimes().others(w.machine, t.server+t.sink+ownCPU()-w.own)
	return t
}

// ownCPU is what this process has taken.
func ownCPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// take fills in what a window took.
func (r *Record) take(t toll) {
	r.CPUSeconds, r.RSSMiB = t.server.Seconds(), t.peakMiB
	if r.remote() {
		r.Others = t.others
		r.note("PostgreSQL, and whatever else runs there, took %.0f %% of the machine while the clock ran", 100*t.others)
	} else {
		r.noteOthers(t.others)
	}
}

// noteOthers says so where the machine was not ours.
func (r *Record) noteOthers(share float64) {
	r.Others = max(r.Others, share)
	if share > 0.05 {
		r.note("something else took %.0f %% of the machine while the clock ran: CPU can be compared, times cannot", 100*share)
	}
}
