package smtp

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Mode specifies how many commands are sent in one write.
type Mode uint32

// The modes, from the slowest to the fastest.
const (
	LockStep   Mode = iota // every command waits for its reply
	Pipelining             // an envelope in one write, the body in another
	Grouped                // a body and the next envelope in one write
)

var modeNames = [...]string{"lockstep", "pipelining", "grouped"}

// String returns the name of the mode in configuration and status.
func (mode Mode) String() string { return modeNames[mode] }

// Status describes how a Driver sends to its peer.
type Status struct {
	Mode   Mode   `json:"mode"`
	Reason string `json:"reason,omitempty"` // why it is not the fastest mode that the configuration allows
}

// MarshalText encodes a Mode as its name.
func (mode Mode) MarshalText() ([]byte, error) { return []byte(mode.String()), nil }

// pipelineMode remembers the fastest mode that a peer supports. It changes to the next
// slower mode if the peer closes the connection or complains in a mode that has never
// worked before. It changes back only if a connection that still used the faster mode
// succeeds: one broken connection among fifty must not slow down the others.
type pipelineMode struct {
	highest    atomic.Uint32 // Mode: the fastest for new connections
	proven     atomic.Uint32 // Mode: the fastest that has worked
	notOffered atomic.Bool   // the last connection was not offered PIPELINING

	mu     sync.Mutex
	final  bool   // the peer refused the faster mode: never change back
	reason string // for highest
}

func (m *pipelineMode) mode() Mode { return Mode(m.highest.Load()) }

// confirm notes that a group in this mode got all its replies.
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

// connectionBroke notes that a connection broke in the middle of a group in this mode. It
// reports whether another connection would now use a slower one.
func (m *pipelineMode) connectionBroke(mode Mode, cause error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mode > LockStep && m.mode() >= mode && Mode(m.proven.Load()) < mode {
		m.highest.Store(uint32(mode - 1))
		m.reason = fmt.Sprintf("the connection was lost during the first use of mode %s: %v", mode, cause)
	}
	return m.mode() < mode
}

// refused notes that the peer explicitly refused a mode.
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

// status returns the mode of a new connection, and why.
func (m *pipelineMode) status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notOffered.Load() {
		return Status{Mode: LockStep, Reason: "the peer does not offer PIPELINING"}
	}
	return Status{Mode: m.mode(), Reason: m.reason}
}
