package catalog

import (
	"encoding/json"
	"strconv"
	"time"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/store/control"
)

// A Worker is a registered program that answers the requests of sessions. It is immutable: an
// apply creates another one.
type Worker struct {
	Number  uint32 // for good
	Service string
	Name    string
	WorkerSettings
}

// WorkerSettings are the settings of a worker in a document. Command, Environment, Directory,
// Prepare and Release concern the machines of agents, whose local files decide what may run there.
type WorkerSettings struct {
	Title       string            `json:"title,omitempty"`
	Command     []string          `json:"command,omitempty"`     // program and arguments; none: agents do not start it
	Environment map[string]string `json:"environment,omitempty"` // in addition to that of the agent
	Directory   string            `json:"directory,omitempty"`   // where the command runs
	Prepare     []string          `json:"prepare,omitempty"`     // runs before the first instance of a version on a host
	Release     []string          `json:"release,omitempty"`     // runs after the last one
	Version     string            `json:"version,omitempty"`     // a change replaces the instances

	Concurrency  int                     `json:"concurrency,omitempty"`   // tasks of an instance at the same time
	Prefetch     Prefetch                `json:"prefetch"`                // further tasks that an instance holds, per running task
	MessageLimit Size                    `json:"message_limit,omitempty"` // of a request or response
	Timeout      Duration                `json:"timeout,omitempty"`       // of a task; 0: none
	Actions      map[string]WorkerAction `json:"actions,omitempty"`       // with their own timeouts
	StartTimeout Duration                `json:"start_timeout,omitempty"` // until a started instance has connected
	StopTimeout  Duration                `json:"stop_timeout,omitempty"`  // until an instance that should leave is killed
}

// A WorkerAction is a kind of request with its own timeout.
type WorkerAction struct {
	Timeout Duration `json:"timeout"`
}

// A Prefetch is a number of tasks, or 0 for as many as the broker finds useful.
type Prefetch int

// AutoPrefetch is the text form of the zero Prefetch.
const AutoPrefetch = "auto"

// MarshalJSON writes the text form.
func (p Prefetch) MarshalJSON() ([]byte, error) {
	if p == 0 {
		return json.Marshal(AutoPrefetch)
	}
	return json.Marshal(strconv.Itoa(int(p)))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Prefetch) UnmarshalJSON(b []byte) error {
	var s string
	err := json.Unmarshal(b, &s)
	if *p = 0; err == nil && s != AutoPrefetch {
		var n int
		n, err = strconv.Atoi(s)
		*p = Prefetch(n)
	}
	return err
}

// A Size is a number of bytes.
type Size int64

// MarshalJSON writes the text form, such as 64KiB.
func (s Size) MarshalJSON() ([]byte, error) { return json.Marshal(config.Size(s).String()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Size) UnmarshalJSON(b []byte) error {
	var text string
	err := json.Unmarshal(b, &text)
	if err == nil {
		var n int64
		n, err = config.ParseSize(text)
		*s = Size(n)
	}
	return err
}

// Definition returns the worker in the form that the broker uses.
func (w *Worker) Definition() session.Definition {
	d := session.Definition{
		Service: w.Service, Name: w.Name, Title: w.Title,
		Command: w.Command, Environment: w.Environment, Directory: w.Directory, Prepare: w.Prepare, Release: w.Release, Version: w.Version,
		Concurrency: w.Concurrency, Prefetch: int(w.Prefetch), MessageLimit: int(w.MessageLimit), Timeout: time.Duration(w.Timeout),
		StartTimeout: time.Duration(w.StartTimeout), StopTimeout: time.Duration(w.StopTimeout),
	}
	if len(w.Actions) > 0 {
		d.Actions = make(map[string]session.Action, len(w.Actions))
		for name, action := range w.Actions {
			d.Actions[name] = session.Action{Timeout: time.Duration(action.Timeout)}
		}
	}
	return d
}

// Workers lists the workers of a service, sorted by name.
func (c Configuration) Workers(service string) []*Worker { return SortedValues(c.of(service).Workers) }

// Worker returns a worker, or nil.
func (c Configuration) Worker(service, name string) *Worker { return c.of(service).Workers[name] }

func loadWorker(s *Snapshot, svc *ServiceSnapshot, c *control.ConfigRecord) error {
	w := &Worker{Number: c.Number, Service: svc.Name, Name: c.Name}
	if err := json.Unmarshal(c.Body, &w.WorkerSettings); err != nil {
		return err
	}
	s.Workers[w.Number] = w
	delete(svc.Workers, c.Name)
	if !c.Deleted {
		svc.Workers[c.Name] = w
	}
	return nil
}
