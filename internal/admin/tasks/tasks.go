package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/control"
)

// The limits of tasks.
const (
	maxKept    = 1000 // tasks; the oldest that have ended are deleted
	maxWaiting = 50   // tasks that have not ended
	maxRunning = 4    // tasks that act at the same time; others wait for their turn
	maxReason  = 200  // characters
)

// The states of a task.
const (
	running   = "running"
	completed = "completed"
	failed    = "failed"
	cancelled = "cancelled"
)

// Store stores tasks; *control.Store has these methods.
type Store interface {
	Tasks(ctx context.Context) ([]control.TaskRecord, error)
	// PutTask stores a task and deletes others.
	PutTask(ctx context.Context, task control.TaskRecord, deleted []string) error
}

// Audit records operations; the actor is in the context.
type Audit interface {
	Record(ctx context.Context, d audit.Operation, detail *audit.Detail) error
}

// Options are the components that tasks need.
type Options struct {
	Store      Store
	Parking    Parking
	Switches   Switches
	Broadcasts Broadcasts
	People     People
	Audit      Audit
	// Rights returns what a starter of tasks may do now. It reports false if they may do nothing, such as the owner of a disabled key.
	Rights func(catalog.Principal) (catalog.Principal, bool)
	Clock  clock.Clock
	Logger *slog.Logger
}

// A record is a task as it is stored.
type record struct {
	wire.Task
	By       catalog.Principal `json:"by"`      // who started it, with their rights at that time
	Request  string            `json:"request"` // id of the request that started it
	Owners   []fanfare.RowID   `json:"owners,omitempty"`
	Position string            `json:"position,omitempty"` // in the list of the action
}

// A task is a record with what the process knows about it.
type task struct {
	record
	isStarted bool
	stop      context.CancelFunc // ends its run; nil before the run begins
	stopped   bool               // by Cancel
	ended     chan struct{}      // closed when it has ended
}

// Tasks are the tasks of a server. They are safe for concurrent use.
type Tasks struct {
	options Options
	actions map[string]action
	changed chan struct{} // holds a token if a task may begin to run

	mu  sync.Mutex
	all []*task // the oldest first
}

// Open reads the tasks.
func Open(ctx context.Context, o Options) (*Tasks, error) {
	t := &Tasks{options: o, actions: o.actions(), changed: make(chan struct{}, 1)}
	list, err := o.Store.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	for _, stored := range list {
		one := &task{ended: make(chan struct{})}
		if err := json.Unmarshal([]byte(stored.Body), &one.record); err != nil {
			return nil, fmt.Errorf("task %s: %w", stored.ID, err)
		}
		if one.State != running {
			close(one.ended)
		}
		t.all = append(t.all, one)
	}
	t.wake()
	return t, nil
}

// wake makes Run look for tasks that can begin.
func (t *Tasks) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Start starts a task for a service, or for all with "". It is stored when Start returns.
func (t *Tasks) Start(ctx context.Context, by catalog.Principal, request, service string, in wire.TaskRequest) (wire.Task, error) {
	one, err := t.newTask(ctx, by, request, service, in)
	if err != nil {
		return wire.Task{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkLimits(one); err != nil {
		return wire.Task{}, err
	}
	for len(t.all) > 0 && !one.StartedAt.After(t.all[len(t.all)-1].StartedAt) { // ids follow the time, and are unique
		one.StartedAt = t.all[len(t.all)-1].StartedAt.Add(time.Microsecond)
	}
	one.ID = fmt.Sprintf("tsk-%x", one.StartedAt.UnixMicro())
	deleted := t.excess()
	if err := t.put(ctx, one.record, deleted); err != nil {
		return wire.Task{}, control.UserError(err, "the task could not be stored")
	}
	t.all = slices.DeleteFunc(t.all, func(old *task) bool { return slices.Contains(deleted, old.ID) })
	t.all = append(t.all, one)
	t.wake()
	return one.Task, nil
}

// newTask checks a request, and returns the task without its id.
func (t *Tasks) newTask(ctx context.Context, by catalog.Principal, request, service string, in wire.TaskRequest) (*task, error) {
	does, ok := t.actions[in.Action]
	if !ok {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/action", Message: fmt.Sprintf("unknown action %q", shortened(in.Action)), Hint: "use " + strings.Join(t.names(), ", ")}
	}
	if err := t.allowed(by, in.Action, service, in.Filter.AllServices); err != nil {
		return nil, err
	}
	if len([]rune(in.Reason)) > maxReason {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/reason", Message: fmt.Sprintf("the reason is longer than %d characters", maxReason), Hint: "shorten it"}
	}
	if err := checkFilter(does, &in.Filter); err != nil {
		return nil, err
	}
	if in.Filter.AllServices {
		service = ""
	}
	one := &task{ended: make(chan struct{}), record: record{By: by, Request: request, Task: wire.Task{
		Service: service, Action: in.Action, Filter: in.Filter, Reason: catalog.CleanReason(in.Reason), State: running, KeyID: by.KeyID, KeyName: by.Name,
		StartedAt: t.options.Clock.Now().UTC().Truncate(time.Microsecond),
	}}}
	if in.Filter.Subscriber != "" {
		owners, err := t.options.People.SubscriberPlaces(ctx, service, in.Filter.Subscriber)
		if err != nil {
			return nil, err
		}
		if len(owners) == 0 {
			return nil, people.UnknownSubscriber(in.Filter.Subscriber)
		}
		one.Owners, one.Filter.Subscriber = owners, people.SubscriberID(owners[0]) // an erasure need not change tasks
	}
	_, _, err := does.list(ctx, &one.record, "", 1) // whether the topic and the channel exist
	return one, err
}

// checkLimits refuses a task if there are too many, or if the same is being done already.
func (t *Tasks) checkLimits(one *task) error {
	open := 0
	for _, other := range t.all {
		if other.State != running {
			continue
		}
		open++
		if other.Service == one.Service && other.Action == one.Action && other.Filter == one.Filter {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "task " + other.ID + " is doing the same", Hint: "wait until it has ended, or cancel it"}
		}
	}
	if open >= maxWaiting {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: fmt.Sprintf("%d tasks are running", open), Hint: "wait until one has ended, or cancel one"}
	}
	return nil
}

// excess returns the ids of the oldest ended tasks, so that one more is within the limit.
func (t *Tasks) excess() (ids []string) {
	for _, one := range t.all {
		if len(t.all)-len(ids) < maxKept {
			break
		}
		if one.State != running {
			ids = append(ids, one.ID)
		}
	}
	return ids
}

func (t *Tasks) names() (names []string) {
	for name := range t.actions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func shortened(text string) string { return strings.ToValidUTF8(text[:min(len(text), 50)], "") }

// checkFilter refuses members that the action does not have.
func checkFilter(does action, f *wire.TaskFilter) error {
	set := map[string]bool{"topic": f.Topic != "", "channel": f.Channel != "", "subscriber": f.Subscriber != "", "state": f.State != "", "reason": f.Reason != "", "all_services": f.AllServices}
	for _, name := range []string{"topic", "channel", "subscriber", "state", "reason", "all_services"} {
		if set[name] && !slices.Contains(does.filters, name) {
			hint := "the action has no filters; omit it"
			if len(does.filters) > 0 {
				hint = "the action has the filters " + strings.Join(does.filters, ", ")
			}
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/filter/" + name, Message: "the action has no filter " + name, Hint: hint}
		}
	}
	for name, of := range map[string]struct {
		value string
		valid []string
	}{
		"state":  {f.State, []string{people.StateActive, people.StatePaused}},
		"reason": {f.Reason, []string{"soft_bounces", "imported", "unsubscribed", "hard_bounce", "manual", "complaint"}},
	} {
		if of.value != "" && !slices.Contains(of.valid, of.value) {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/filter/" + name, Message: fmt.Sprintf("%q is not valid here", shortened(of.value)), Hint: "use " + strings.Join(of.valid, ", ")}
		}
	}
	return nil
}

// allowed returns an error if a principal may not do an action in a service.
func (t *Tasks) allowed(by catalog.Principal, name, service string, allServices bool) error {
	scopes := t.actions[name].scopes
	switch {
	case !by.Scopes.Has(scopes):
		return &fanfare.Error{Code: fanfare.Forbidden, Message: "the action " + name + " needs a key with the scope " + scopes.String(), Hint: cmp.Or(by.KeyID, by.Name) + " has " + by.Scopes.String()}
	case allServices && !by.Operator():
		return &fanfare.Error{Code: fanfare.Forbidden, Pointer: "/filter/all_services", Message: "the suppressions for all services need a key for all services with the scope admin", Hint: "use an operator key, such as the one in admin.key of the data directory"}
	case !by.May(service):
		return &fanfare.Error{Code: fanfare.Forbidden, Message: cmp.Or(by.KeyID, by.Name) + " is for service " + by.Service + " only", Hint: "use a key for that service, or one for all services"}
	}
	return nil
}

// List returns the tasks of a service, or all with "", the newest first. With shared, the tasks of a service include those for all services.
func (t *Tasks) List(service string, shared bool) (list []wire.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range slices.Backward(t.all) {
		if service == "" || one.Service == service || shared && one.Service == "" {
			list = append(list, one.Task)
		}
	}
	return list
}

// Task returns a task of a service, or any with "". It fails with NotFound.
func (t *Tasks) Task(service, id string) (wire.Task, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, err := t.find(service, id)
	if err != nil {
		return wire.Task{}, err
	}
	return one.Task, nil
}

func (t *Tasks) find(service, id string) (*task, error) {
	for _, one := range t.all {
		if one.ID == id && (service == "" || one.Service == service) {
			return one, nil
		}
	}
	return nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the task %q does not exist", shortened(id)), Hint: "`fanfare task list` lists the tasks"}
}

// Cancel stops a task. When it returns, the task acts on no further object. Cancelling it again is no error.
func (t *Tasks) Cancel(ctx context.Context, by catalog.Principal, service, id string) (wire.Task, error) {
	t.mu.Lock()
	one, err := t.find(service, id)
	if err == nil {
		err = t.allowed(by, one.Action, one.Service, one.Filter.AllServices)
	}
	if err == nil && one.State != running && one.State != cancelled {
		err = &fanfare.Error{Code: fanfare.Conflict, Message: "the task has ended: it is " + one.State, Hint: "there is nothing left to cancel"}
	}
	if err != nil {
		t.mu.Unlock()
		return wire.Task{}, err
	}
	one.stopped = true
	if one.stop != nil {
		one.stop()
	}
	t.mu.Unlock()
	t.wake() // a task that waits for its turn ends at once
	select {
	case <-one.ended:
	case <-ctx.Done():
		return wire.Task{}, ctx.Err()
	}
	return t.Task("", id)
}

// put stores a task.
func (t *Tasks) put(ctx context.Context, r record, deleted []string) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return t.options.Store.PutTask(ctx, control.TaskRecord{ID: r.ID, Body: string(body)}, deleted)
}
