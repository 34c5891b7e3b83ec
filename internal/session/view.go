package session

import (
	"context"
	"errors"
	"time"

	"fanfare.dev/fanfare/internal/session/frame"
)

// ErrFenced means that another broker has taken over the session.
var ErrFenced = errors.New("another broker has taken over the session")

// A Position says where a client continues.
type Position struct {
	From     uint64 // number of the first response that it receives; 0: the first one that it has not confirmed
	Again    bool   // the same process was connected before ...
	Accepted uint64 // ... and knows the exceptions of the requests up to this one
}

// A Conn is the connection of a client or an instance. Read returns the next frame, which belongs to the caller. Write and
// Close are safe for concurrent use with Read; Write is called by one goroutine at a time.
type Conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, frame []byte) error
	Close(code int, reason string) error
}

// The codes with which the broker closes a connection (RFC 6455, section 7.4.2: 4000 to 4999 are private).
const (
	CloseNormal    = 1000
	CloseGoingAway = 1001 // the broker stops; connect again
	CloseInvalid   = 4000 // the peer violated the protocol; the frame Problem before it says how
	CloseReplaced  = 4001 // a newer connection has the same name
	CloseEnded     = 4002 // the session has ended
	CloseSlow      = 4003 // the peer was silent for too long
)

// An Info is what the API and the CLI show of a session.
type Info struct {
	Record
	ID          string
	Clients     []ClientInfo
	Queued      int64 // requests that wait for an instance
	Running     int64 // tasks at instances
	Requests    uint64
	Responses   uint64
	Faults      uint64 // of the responses
	Resends     uint64
	LateResults uint64 // that came after their timeout, and were dropped
	Instances   int    // that work for the session at the moment
}

// A ClientInfo is the part of a client.
type ClientInfo struct {
	ClientRecord
	Connected bool
	Queued    int64
}

// A WorkerInfo is what is known of a worker.
type WorkerInfo struct {
	Definition
	Sessions  int // that are open
	Queued    int64
	Running   int64
	Instances []InstanceInfo
	Totals    Totals
}

// Totals are counts since the broker started.
type Totals struct {
	Requests    uint64 // without repetitions and refusals
	Responses   uint64
	Faults      uint64 // of the responses
	Resends     uint64
	LateResults uint64
}

// An InstanceInfo is one connected process.
type InstanceInfo struct {
	Name        string
	Remote      string // address of the connection
	ConnectedAt time.Time
	Capacity    int
	Running     int
	Draining    bool
	Done        uint64 // tasks
	Faults      uint64
	SkippedTo   time.Time // receives nothing until then, because a connection of this instance was lost; zero: not skipped
}

// A Demand says how many instances of a worker are wanted.
type Demand struct {
	Service, Worker string
	Instances       int // wanted
	Connected       int // that do not drain
}

// A Trace says what happened to a request.
type Trace struct {
	Client     string
	Request    uint64
	QueuedAt   time.Time
	Dispatched []Dispatch
	AnsweredAt time.Time // zero: not yet
	Status     string    // queued, running, ok or fault
	Response   uint64    // its number; 0: none yet
}

// A Dispatch is one attempt.
type Dispatch struct {
	At       time.Time
	Instance string
	Outcome  string // ok, fault, retry, returned, timeout, lost; "": running
}

// A Page is a part of the responses of a client.
type Page struct {
	Responses []frame.Response
	First     uint64 // number of the first one
	Next      uint64 // number at which the next page begins
}
