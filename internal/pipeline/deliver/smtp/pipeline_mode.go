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
func (mode Mode) String() string { return modeNames[mode] }

// Status says how a Driver talks to its peer.
type Status struct {
	Mode   Mode   `json:"mode"`
	Reason string `json:"reason,omitempty"` // why it is not the fastest that the configuration allows
}

// MarshalText lets a Mode appear by name in JSON.
func (mode Mode) MarshalText() ([]byte, error) { return []byte(mode.String()), nil }

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

func (m *pipelineMode) mode() Mode { return Mode(m.highest.Load()) }

// confirm notes that a group of mode m was answered in step.
func (m *pipelineMode) confirm(mode Mode) {
	if Mode(m.proven.Load()) >= mode {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.final {
		return
	}
	m.proven.Store(uint32(mode))
	if m.mode() < mode {
		m.highest.Store(uint32(mode))
		m.reason = ""
	}
}

// connectionBroke notes that a connection ended in the middle of a group of mode m, and
// reports whether another connection would now use a lower one.
func (m *pipelineMode) connectionBroke(mode Mode, cause error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mode > LockStep && m.mode() >= mode && Mode(m.proven.Load()) < mode {
		m.highest.Store(uint32(mode - 1))
		m.reason = fmt.Sprintf("the connection broke in the first use of mode %s: %v", mode, cause)
	}
	return m.mode() < mode
}

// refused notes that the peer complained about mode m in so many words.
func (m *pipelineMode) refused(mode Mode, reply string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mode == LockStep || m.mode() < mode {
		return
	}
	m.highest.Store(uint32(mode - 1))
	m.proven.Store(min(m.proven.Load(), uint32(mode-1)))
	m.final = true
	m.reason = fmt.Sprintf("the peer refused mode %s: %s", mode, reply)
}

// status tells what a new connection would use, and why.
func (m *pipelineMode) status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notOffered.Load() {
		return Status{Mode: LockStep, Reason: "the peer does not offer PIPELINING"}
	}
	return Status{Mode: m.mode(), Reason: m.reason}
}
