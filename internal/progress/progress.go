// Package progress reports how far a start is: which phase runs, and how many records it has processed. The
// wiring of the server begins the phases, the code that loads data counts, and the API and the log show the
// result. A Reporter holds only the current phase.
package progress

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// logInterval is the time between two log lines about a phase.
const logInterval = 2 * time.Second

// A Reporter knows the current phase. It is safe for concurrent use.
type Reporter struct{ current atomic.Pointer[Phase] }

// A Phase is a part of a start. A nil Phase counts nothing.
type Phase struct {
	name        string
	begun       time.Time
	done, total atomic.Int64
}

// Begin ends the current phase and begins another. The total is 0 if it is unknown.
func (r *Reporter) Begin(name string, total int64) *Phase {
	p := &Phase{name: name, begun: time.Now()}
	p.total.Store(total)
	r.current.Store(p)
	return p
}

// Now returns the current phase, and its counts. The name is empty before the first phase.
func (r *Reporter) Now() (name string, done, total int64) {
	p := r.current.Load()
	if p == nil {
		return "", 0, 0
	}
	return p.name, p.done.Load(), p.total.Load()
}

// Run logs each phase that takes long, until ctx ends.
func (r *Reporter) Run(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(logInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if p := r.current.Load(); p != nil && time.Since(p.begun) >= logInterval {
			args := []any{"phase", p.name, "seconds", int(time.Since(p.begun).Seconds())}
			if done, total := p.done.Load(), p.total.Load(); total > 0 {
				args = append(args, "done", done, "total", total)
			} else if done > 0 {
				args = append(args, "done", done)
			}
			log.Info("starting", args...)
		}
	}
}

// Add counts processed records.
func (p *Phase) Add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// SetTotal sets the number of records, once it is known.
func (p *Phase) SetTotal(n int64) {
	if p != nil {
		p.total.Store(n)
	}
}
