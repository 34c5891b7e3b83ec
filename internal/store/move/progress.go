package move

import (
	"sync"
	"time"
)

// A Phase is the current phase of a move.
type Phase string

// The phases, in their order.
const (
	Preparing  Phase = "preparing"
	Copying    Phase = "copying"
	CatchingUp Phase = "catching up"
	Comparing  Phase = "comparing"
	Switching  Phase = "switching"
	Done       Phase = "done"
	Failed     Phase = "failed"
)

// State is the progress of a move.
type State struct {
	Phase       Phase
	Part, Table string
	Rows, Total int64 // of this phase; a row that is compared counts on both sides
	Bytes       int64 // of these rows
	Behind      int64 // bytes that were written to the source and are not in the target yet
	Since       time.Time
}

// Progress receives the progress of a move. The zero value is ready; a nil Progress ignores it.
type Progress struct {
	mu    sync.Mutex
	state State
}

// State returns the progress.
func (p *Progress) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *Progress) change(f func(*State)) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.state)
}

func (p *Progress) phase(phase Phase, total int64, now time.Time) {
	p.change(func(s *State) { *s = State{Phase: phase, Total: total, Since: now} })
}

func (p *Progress) at(part, table string) {
	p.change(func(s *State) { s.Part, s.Table = part, table })
}

func (p *Progress) add(page *rows) {
	p.change(func(s *State) { s.Rows += int64(page.len()); s.Bytes += int64(len(page.b)) })
}

func (p *Progress) behind(n int64) { p.change(func(s *State) { s.Behind = n }) }
