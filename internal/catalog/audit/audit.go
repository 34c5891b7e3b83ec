package audit

import (
	"context"
	"encoding/json"
	"time"
)

// An Actor is who asks for a change. It travels with the context of the request;
// a change without one is the server's own doing and leaves no line in the audit.
type Actor struct {
	KeyID   string // key-1, ...; "" for who needs none, such as a recipient with a link
	KeyName string // as it was then
	Request string // request id, as in the log
	Tenant  string // the only service that the key may touch; "" is all of them; not kept
}

type actorKey struct{}

// WithActor returns a context whose changes are the actor's.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, &a)
}

// WithoutActor returns a context whose changes leave no lines in the audit: for many
// that are noted together.
func WithoutActor(ctx context.Context) context.Context {
	return context.WithValue(ctx, actorKey{}, (*Actor)(nil))
}

// ActorOf is nil where nobody asks.
func ActorOf(ctx context.Context) *Actor {
	a, _ := ctx.Value(actorKey{}).(*Actor)
	return a
}

// A Operation is what was done, in ids: no addresses, no secrets.
type Operation struct {
	Service string // "" for what belongs to none
	Action  string // create, update, delete, pause, ...
	Kind    string // of what it was done to: topic, key, subscription, ...
	Name    string // its id or name
}

// A Detail is what more there is to say about a deed.
type Detail struct {
	Fields  []FieldChange    `json:"fields,omitempty"`  // of the configuration, before and after
	Changed []string         `json:"changed,omitempty"` // names of other fields: their values may be personal
	Counts  map[string]int64 `json:"counts,omitempty"`  // of a deed that was done to many
}

// An Entry is one line of the audit as kept.
type Entry struct {
	ID int64 // Unix microseconds, and one more where two fall together; set when it is kept
	Actor
	Operation
	Detail []byte // JSON of a Detail, or nil
}

// NewEntry makes the line of a deed; detail may be nil.
func NewEntry(a *Actor, d Operation, detail *Detail) Entry {
	r := Entry{Actor: *a, Operation: d}
	if detail != nil && len(detail.Fields)+len(detail.Changed)+len(detail.Counts) > 0 {
		r.Detail, _ = json.Marshal(detail) // plain fields: cannot fail
	}
	return r
}

// An Query picks lines of the audit. Empty fields pick all.
type Query struct {
	Service, KeyID, Action, Kind, Name string
	Since, Until                       time.Time // since inclusive, until exclusive
	Before                             int64     // lines with lower ids only; 0: from the latest on
	Limit                              int
}

func (q *Query) Matches(l *Entry) bool {
	is := func(asked, has string) bool { return asked == "" || asked == has }
	return is(q.Service, l.Service) && is(q.KeyID, l.KeyID) && is(q.Action, l.Action) && is(q.Kind, l.Kind) && is(q.Name, l.Name)
}

// Time is when the deed was done.
func (l *Entry) Time() time.Time { return time.UnixMicro(l.ID).UTC() }

// A FieldChange is one field before and after, as text.
type FieldChange struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}
