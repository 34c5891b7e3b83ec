// Package audit has the values of the audit log: the actor of a change, which travels with the
// context of a request, the operation, and the entry that is stored. The registry and the HTTP
// handlers use it. Entries are stored by the control store in the same transaction as the change.
package audit

import (
	"context"
	"encoding/json"
	"time"
)

// An Actor asks for a change. The server makes changes without an actor on its own behalf; they
// leave no entry in the audit log.
type Actor struct {
	KeyID   string // key-1, ...; "" for an actor without a key, such as a person of OpenID Connect or a recipient with a link
	KeyName string // at the time of the change; without a key, the title of the actor
	Request string // request id, as in the log
	Tenant  string // the only service that the key may change; "": all; not stored
}

// Title returns the id and the name of the actor's key or, without a key, the title of the actor; "" for nil.
func (a *Actor) Title() string {
	switch {
	case a == nil:
		return ""
	case a.KeyID == "":
		return a.KeyName
	case a.KeyName == "":
		return a.KeyID
	}
	return a.KeyID + " (" + a.KeyName + ")"
}

type actorKey struct{}

// WithActor returns a context for changes of the actor.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, &a)
}

// WithoutActor returns a context for changes that leave no entries, such as many changes that one
// entry describes together.
func WithoutActor(ctx context.Context) context.Context {
	return context.WithValue(ctx, actorKey{}, (*Actor)(nil))
}

// ActorOf returns the actor of a context, nil without one.
func ActorOf(ctx context.Context) *Actor {
	a, _ := ctx.Value(actorKey{}).(*Actor)
	return a
}

// An Operation says what an actor did. It has ids only, no addresses and no secrets.
type Operation struct {
	Service string // "" if the object belongs to no service
	Action  string // create, update, delete, pause, ...
	Kind    string // of the object: topic, key, subscription, ...
	Name    string // id or name of the object
}

// A Detail describes an operation further.
type Detail struct {
	Fields  []FieldChange    `json:"fields,omitempty"`  // of the configuration, before and after
	Changed []string         `json:"changed,omitempty"` // names of fields whose values may be personal
	Counts  map[string]int64 `json:"counts,omitempty"`  // of an operation on many objects
}

// A FieldChange is one field before and after, as text.
type FieldChange struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// An Entry is one entry of the audit log as it is stored.
type Entry struct {
	ID int64 // Unix microseconds, increased where two are equal; assigned when it is stored
	Actor
	Operation
	Detail []byte // JSON of a Detail, or nil
}

// NewEntry returns the entry of an operation. The detail may be nil.
func NewEntry(a *Actor, op Operation, detail *Detail) Entry {
	e := Entry{Actor: *a, Operation: op}
	if detail != nil && len(detail.Fields)+len(detail.Changed)+len(detail.Counts) > 0 {
		e.Detail, _ = json.Marshal(detail) // plain fields: cannot fail
	}
	return e
}

// Time returns the time of the operation.
func (e *Entry) Time() time.Time { return time.UnixMicro(e.ID).UTC() }

// A Query selects entries. An empty field selects all.
type Query struct {
	Service, KeyID, Action, Kind, Name string
	Person                             string    // title of an actor without a key
	Since, Until                       time.Time // since inclusive, until exclusive
	Before                             int64     // entries with lower ids only; 0: from the latest
	Limit                              int
}

// Matches reports whether the query selects an entry, apart from its time and id.
func (q *Query) Matches(e *Entry) bool {
	is := func(asked, has string) bool { return asked == "" || asked == has }
	return is(q.Service, e.Service) && is(q.KeyID, e.KeyID) && (q.Person == "" || e.KeyID == "" && q.Person == e.KeyName) && is(q.Action, e.Action) && is(q.Kind, e.Kind) && is(q.Name, e.Name)
}
