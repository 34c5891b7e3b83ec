// Package session has the terms of sessions: workers, sessions, their limits and states, and the contract between the broker
// and the log of durable sessions. Package broker dispatches requests, package sessionlog keeps durable sessions in the
// database, package agent starts the instances of workers, package fleet tells agents how many to start, and package frame is
// the protocol.
//
//	client --requests--> broker --tasks--> instance of a worker
//	client <-responses-- broker <-results-- instance of a worker
package session

import (
	"context"
	"time"
)

// A Definition registers a worker: a program that answers requests. Its instances are processes that agents or people start.
type Definition struct {
	Service string
	Name    string
	Title   string

	Command     []string          // what an agent runs; empty: agents do not start it
	Environment map[string]string // in addition to that of the agent
	Directory   string            // where the command runs
	Prepare     []string          // runs once before the first instance of a version on a host
	Release     []string          // runs once after the last one
	Version     string            // a change replaces the instances one after the other

	Concurrency  int           // tasks that an instance runs at the same time
	Prefetch     int           // further tasks that an instance holds, per running task; 0: as many as the broker finds useful
	MessageLimit int           // bytes of a request or response
	Timeout      time.Duration // of a task; 0: none
	Actions      map[string]Action
	StartTimeout time.Duration // until a started instance has connected
	StopTimeout  time.Duration // until an instance that was told to leave is killed
}

// An Action has its own timeout.
type Action struct{ Timeout time.Duration }

// The defaults and bounds of definitions.
const (
	DefaultMessageLimit = 64 << 10
	MaxMessageLimit     = 1 << 20
	DefaultStartTimeout = 30 * time.Second
	DefaultStopTimeout  = 30 * time.Second
	MaxConcurrency      = 1024
	MaxPrefetch         = 4096
)

// A Kind says what a session survives.
type Kind string

// The kinds.
const (
	Interactive Kind = "interactive" // lives in memory and ends with the broker
	Durable     Kind = "durable"     // requests and responses are kept in the database
)

// Options describe a session when it is opened.
type Options struct {
	Worker       string
	Kind         Kind
	Name         string        // unique among the open sessions of a service; "": none
	MinInstances int           // that the session keeps ready while it is open
	MaxInstances int           // that work for it at the same time; 0: no limit
	Priority     int           // 1 to 100: the weight of its share of the instances
	Resends      int           // how often a request is sent again after a fault; 0: it runs at most once; -1: DefaultResends
	IdleTimeout  time.Duration // without clients and without work; 0: the default of the kind
	TotalTimeout time.Duration // since it was opened; 0: the default of the kind
	OpenedBy     string        // id of the key
}

// The defaults and bounds of sessions.
const (
	DefaultPriority        = 50
	MaxPriority            = 100
	DefaultResends         = 3
	MaxResends             = 100
	InteractiveIdleTimeout = 5 * time.Minute
	DurableIdleTimeout     = 7 * 24 * time.Hour
	MaxTotalTimeout        = 30 * 24 * time.Hour

	StopQueued   = 4096 // requests in the queue of an interactive session at which its clients stop
	ResumeQueued = 3072 // and at which they resume
)

// A State is the state of a session.
type State string

// The states.
const (
	Open   State = "open"
	Ended  State = "closed" // closed by a client, an operator or a limit; its data may still exist
	Lost   State = "lost"   // an interactive session whose broker ended
	Purged State = "purged" // closed, and its data are removed
)

// A Record is what the log keeps of each session, interactive ones included.
type Record struct {
	Number   uint64 // the id is ses-<number>
	Service  string
	Options  Options
	State    State
	Reason   string // why it ended
	OpenedAt time.Time
	ClosedAt time.Time
	Epoch    uint64 // rises with each broker that takes over the session
}

// A ClientRecord is what the log keeps of a client of a durable session.
type ClientRecord struct {
	Number    uint32 // in the session, from 1
	Name      string
	Requests  uint64 // number of the last request that is kept
	Accepted  uint64 // number of requests without repetitions and refusals
	Responses uint64 // number of responses
	Received  uint64 // number of the last response that the client has confirmed
	Floor     uint64 // all requests up to here are answered
	Ended     bool
	IDs       bool // at least one request has an id chosen by the client
}

// An EntryKind is the kind of an Entry.
type EntryKind uint8

// The kinds of entries.
const (
	RequestEntry  EntryKind = 1 // First is the number of the first request, Data has Count records of frame.Request
	ResponseEntry EntryKind = 2 // First is the number of the first response, Data has Count records of frame.Response
	StartedEntry  EntryKind = 3 // First is a number that rises with each entry, Data has Count numbers (uint64, little-endian) of requests that may start
	ResendEntry   EntryKind = 4 // as StartedEntry: requests that are sent again; Data has pairs of number and attempts
	TraceEntry    EntryKind = 5 // First is that of the ResponseEntry, Data has Count traces
)

// An Entry is one row of the log: a group of requests or responses of one client.
type Entry struct {
	Session uint64
	Client  uint32
	Kind    EntryKind
	First   uint64
	Count   uint32
	High    uint64 // the highest number of a request in the entry
	Data    []byte
}

// A ClientUpdate stores the state of a client with the entries that changed it.
type ClientUpdate struct {
	Session uint64
	Client  ClientRecord
}

// An Append is one transaction. It fails with ErrFenced if the epoch of one of its sessions is not the stored one.
type Append struct {
	Epochs  map[uint64]uint64 // by session
	Entries []Entry
	Clients []ClientUpdate
}

// A Log keeps sessions. Its methods are safe for concurrent use. A write that has returned without an error survives the
// failures that the durability of the server covers. An error that wraps store.ErrAway may be repeated: entries with the same
// key are the same entries.
type Log interface {
	// Create stores a session and sets its number.
	Create(ctx context.Context, record *Record) error
	// Update stores the options, the state, the reason and the time of the end of a session.
	Update(ctx context.Context, record *Record) error
	// Sessions returns the sessions that are open, and those that ended after since.
	Sessions(ctx context.Context, since time.Time) ([]Record, error)
	// TakeOver raises the epoch of a session and returns it.
	TakeOver(ctx context.Context, session uint64) (uint64, error)
	// Append stores entries and clients in one transaction.
	Append(ctx context.Context, a *Append) error
	// Clients returns the clients of a session, by number.
	Clients(ctx context.Context, session uint64) ([]ClientRecord, error)
	// Entries calls fn for the entries of a client of one kind, in the order of First, beginning with the one that contains
	// from, until fn returns false. The data belong to fn. Only entries whose High is at least high are visited.
	Entries(ctx context.Context, session uint64, client uint32, kind EntryKind, from, high uint64, fn func(Entry) bool) error
	// PurgeClient removes the entries of a client.
	PurgeClient(ctx context.Context, session uint64, client uint32) error
	// Purge removes the entries and clients of a session, and sets its state to Purged.
	Purge(ctx context.Context, session uint64) error
	// RemoveEnded removes all that is kept of sessions that ended before a time.
	RemoveEnded(ctx context.Context, before time.Time) error
}
