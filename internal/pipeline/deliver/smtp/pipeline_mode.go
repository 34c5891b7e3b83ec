package smtp

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Mode is how closely commands are packed on the wire.
type Mode uint32

// The modes, from the most careful to the fastest.
const (
	LockStep   Mode = iota // every command waits for its reply
	Pipelining             // an envelope goes in one write, the body in another
	Grouped                // a body and the next envelope go in one write
)

var modeNames = [...]string{"lockstep", "pipelining", "grouped"}

// String returns the mode's name as configuration and status spell it.
func (m Mode) String() string { return modeNames[m] }

// Status says how a Driver talks to its peer.
type Status struct {
	Mode   Mode   `json:"mode"`
	Reason string `json:"reason,omitempty"` // why it is not the fastest that the configuration allows
}

// MarshalText lets a Mode appear by name in JSON.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// A ladder remembers the fastest mode that a peer bears. It goes down one rung
// when a peer breaks or complains on a mode that it has never completed, and up
// again only where a connection that was still trying proves the suspicion
// wrong: a single cut cable among fifty connections must not slow the rest.
type pipelineMode struct {
	highest    atomic.Uint32 // Mode: the highest that new connections use
	proven     atomic.Uint32 // Mode: the highest that was answered in step
	notOffered atomic.Bool   // the last connection was not offered PIPELINING

	mu     sync.Mutex
	final  bool   // the peer has said so: nothing leads up again
	reason string // why top is where it is
}

func (l *pipelineMode) mode() Mode { return Mode(l.highest.Load()) }

// confirm notes that a group of mode m was answered in step.
func (l *pipelineMode) confirm(m Mode) {
	if Mode(l.proven.Load()) >= m {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.final {
		return
	}
	l.proven.Store(uint32(m))
	if l.mode() < m {
		l.highest.Store(uint32(m))
		l.reason = ""
	}
}

// connectionBroke notes that a connection ended in the middle of a group of mode m, and
// reports whether another connection would now use a lower one.
func (l *pipelineMode) connectionBroke(m Mode, cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m > LockStep && l.mode() >= m && Mode(l.proven.Load()) < m {
		l.highest.Store(uint32(m - 1))
		l.reason = fmt.Sprintf("the connection broke in the first use of mode %s: %v", m, cause)
	}
	return l.mode() < m
}

// refused notes that the peer complained about mode m in so many words.
func (l *pipelineMode) refused(m Mode, reply string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m == LockStep || l.mode() < m {
		return
	}
	l.highest.Store(uint32(m - 1))
	l.proven.Store(min(l.proven.Load(), uint32(m-1)))
	l.final = true
	l.reason = fmt.Sprintf("the peer refused mode %s: %s", m, reply)
}

// status tells what a new connection would use, and why.
func (l *pipelineMode) status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.notOffered.Load() {
		return Status{Mode: LockStep, Reason: "the peer does not offer PIPELINING"}
	}
	return Status{Mode: l.mode(), Reason: l.reason}
}
