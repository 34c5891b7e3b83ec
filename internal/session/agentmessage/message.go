// Package agentmessage has the messages between an agent and the server, in JSON. Both sides send their whole state whenever
// it changes, so a lost connection needs no recovery: the agent sends Report, and the server sends Want. Packages agent and
// fleet use it; docs/reference/session-protocol.md describes the messages.
package agentmessage

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"fanfare.dev/fanfare/internal/session"
)

// The types of messages.
const (
	TypeReport  = "report"
	TypeWant    = "want"
	TypeProblem = "problem"
)

// The limits of the last output of an instance.
const (
	MaxOutputLines = 20
	MaxLineBytes   = 500
)

// A Report is the state of an agent. The first message on a connection is a Report.
type Report struct {
	Type         string   `json:"type"`
	Host         string   `json:"host"`
	Version      string   `json:"version"` // of the program
	Cores        int      `json:"cores"`
	MaxInstances int      `json:"max_instances"`
	Stopping     bool     `json:"stopping,omitempty"` // the agent drains its instances and ends
	Workers      []Worker `json:"workers"`            // all that the file of the agent lists
}

// A Worker is the state of a worker on the host of an agent.
type Worker struct {
	Service      string     `json:"service"`
	Worker       string     `json:"worker"`
	MaxInstances int        `json:"max_instances"`
	Wanted       int        `json:"wanted"`
	Instances    []Instance `json:"instances,omitempty"`
	Failures     int        `json:"failures,omitempty"` // consecutive failed starts, while no instance is connected
	LastExit     *Exit      `json:"last_exit,omitempty"`
	Refusal      *Refusal   `json:"refusal,omitempty"`
}

// The states of an instance.
const (
	Waiting  = "waiting"  // until it is prepared, or until the pause after a failure has passed
	Starting = "starting" // the process runs and has not yet connected
	Running  = "running"
	Draining = "draining"
)

// An Instance is one process, or the place of one that waits for its start.
type Instance struct {
	Name      string    `json:"name,omitempty"` // empty: it waits
	State     string    `json:"state"`
	Version   string    `json:"version,omitempty"`
	PID       int       `json:"pid,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
}

// An Exit says how a process ended that nobody had told to end.
type Exit struct {
	Instance string    `json:"instance,omitempty"`
	Step     string    `json:"step"` // prepare, command or release
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
	Output   []string  `json:"output,omitempty"` // its last lines
}

// A Refusal says that the file of the agent does not allow what the server wants.
type Refusal struct {
	Definition string    `json:"definition"` // digest of the refused definition
	Pointer    string    `json:"pointer"`    // field of the definition, such as /command
	Message    string    `json:"message"`
	Hint       string    `json:"hint,omitempty"`
	At         time.Time `json:"at"`
}

// A Want lists all instances that the agent should run. A worker that is not in it gets none.
type Want struct {
	Type    string       `json:"type"`
	Workers []WantWorker `json:"workers"`
}

// A WantWorker is the part of one worker.
type WantWorker struct {
	Service    string     `json:"service"`
	Worker     string     `json:"worker"`
	Instances  int        `json:"instances"`
	Connected  []string   `json:"connected,omitempty"` // names of the instances of this agent that are connected to the broker
	Definition Definition `json:"definition"`
}

// A Definition is the part of session.Definition that an agent needs.
type Definition struct {
	Command      []string          `json:"command"`
	Environment  map[string]string `json:"environment,omitempty"`
	Directory    string            `json:"directory,omitempty"`
	Prepare      []string          `json:"prepare,omitempty"`
	Release      []string          `json:"release,omitempty"`
	Version      string            `json:"version,omitempty"`
	StartTimeout float64           `json:"start_timeout_seconds,omitempty"`
	StopTimeout  float64           `json:"stop_timeout_seconds,omitempty"`
}

// A Problem is sent before the server closes the connection because of an error.
type Problem struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// DefinitionOf returns the part of a definition that an agent needs.
func DefinitionOf(d *session.Definition) Definition {
	return Definition{d.Command, d.Environment, d.Directory, d.Prepare, d.Release, d.Version, d.StartTimeout.Seconds(), d.StopTimeout.Seconds()}
}

// Digest identifies the content of a definition without its timeouts. Instances are replaced if it changes.
func (d Definition) Digest() string {
	d.StartTimeout, d.StopTimeout = 0, 0
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings, lists and maps of strings have a JSON form
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
