package registry

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

// As returns a context whose changes are the actor's.
func As(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, actorKey{}, &a) }

// Unnoted returns a context whose changes leave no lines in the audit: for many
// that are noted together.
func Unnoted(ctx context.Context) context.Context {
	return context.WithValue(ctx, actorKey{}, (*Actor)(nil))
}

// actorOf is nil where nobody asks.
func actorOf(ctx context.Context) *Actor {
	a, _ := ctx.Value(actorKey{}).(*Actor)
	return a
}

// A Deed is what was done, in ids: no addresses, no secrets.
type Deed struct {
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

// An AuditRecord is one line of the audit as kept.
type AuditRecord struct {
	ID int64 // Unix microseconds, and one more where two fall together; set when it is kept
	Actor
	Deed
	Detail []byte // JSON of a Detail, or nil
}

// newEntry makes the line of a deed; detail may be nil.
func newEntry(a *Actor, d Deed, detail *Detail) AuditRecord {
	r := AuditRecord{Actor: *a, Deed: d}
	if detail != nil && len(detail.Fields)+len(detail.Changed)+len(detail.Counts) > 0 {
		r.Detail, _ = json.Marshal(detail) // plain fields: cannot fail
	}
	return r
}

// AddAudit adds an entry about an operation if the change has an actor.
func (b *Batch) AddAudit(a *Actor, d Deed, detail *Detail) {
	if a != nil {
		b.Audit = append(b.Audit, newEntry(a, d, detail))
	}
}

// Record keeps a line about a change that is not one of the registry's, such as
// a broadcast that was cancelled, or one of many. It is durable on return.
func (r *Registry) Record(ctx context.Context, d Deed, detail *Detail) error {
	actor := actorOf(ctx)
	if actor == nil {
		return nil
	}
	line := newEntry(actor, d, detail)
	return r.writer.submit(context.WithoutCancel(ctx), &job{note: &line})
}

// stamp gives the lines of b their ids. It runs where batches are committed.
func (w *writer) stamp(b *Batch) {
	now := w.r.opt.Now().UnixMicro()
	for i := range b.Audit {
		w.lastAudit = max(w.lastAudit+1, now)
		b.Audit[i].ID = w.lastAudit
	}
}

// An AuditQuery picks lines of the audit. Empty fields pick all.
type AuditQuery struct {
	Service, KeyID, Action, Kind, Name string
	Since, Until                       time.Time // since inclusive, until exclusive
	Before                             int64     // lines with lower ids only; 0: from the latest on
	Limit                              int
}

// maxAuditScan is how many lines one query looks at.
const maxAuditScan = 200_000

// Audit returns lines, the latest first, and below which id the next page goes
// on, 0 at the end. A page may be short where much was passed by.
func (r *Registry) Audit(ctx context.Context, q AuditQuery) (lines []AuditRecord, next int64, err error) {
	from, to := int64(0), int64(1<<62)
	if !q.Since.IsZero() {
		from = q.Since.UnixMicro()
	}
	if !q.Until.IsZero() {
		to = q.Until.UnixMicro() - 1
	}
	if q.Before > 0 {
		to = min(to, q.Before-1)
	}
	scanned := 0
	err = r.opt.Store.AuditRecords(ctx, from, to, func(line *AuditRecord) bool {
		if len(lines) == q.Limit || scanned == maxAuditScan {
			next = line.ID + 1
			return false
		}
		scanned++
		if q.picks(line) {
			lines = append(lines, *line)
		}
		return true
	})
	if err != nil {
		return nil, 0, r.unreadable(err)
	}
	return lines, next, nil
}

func (q *AuditQuery) picks(l *AuditRecord) bool {
	is := func(asked, has string) bool { return asked == "" || asked == has }
	return is(q.Service, l.Service) && is(q.KeyID, l.KeyID) && is(q.Action, l.Action) && is(q.Kind, l.Kind) && is(q.Name, l.Name)
}

// Time is when the deed was done.
func (l *AuditRecord) Time() time.Time { return time.UnixMicro(l.ID).UTC() }

// TrimAudit removes the lines from before a time, some at a time.
func (r *Registry) TrimAudit(ctx context.Context, before time.Time) error {
	for ctx.Err() == nil {
		oldest, _, err := r.opt.Store.AuditBounds(ctx)
		if err != nil || oldest == 0 || oldest >= before.UnixMicro() {
			return err
		}
		err = r.writer.submit(ctx, &job{run: func(*writer) error { return r.commit(&Batch{AuditBefore: before.UnixMicro()}) }})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// KeepUses keeps when each key was used last.
func (r *Registry) KeepUses(ctx context.Context) error {
	return r.writer.submit(ctx, &job{run: func(*writer) error {
		var b Batch
		var kept []*heldKey
		for _, k := range r.keyring.list("") {
			if k.lastUsed().Equal(k.LastUsed) {
				continue
			}
			used := *k
			record, err := r.keyRecord(&used)
			if err != nil {
				return err
			}
			b.Config, kept = append(b.Config, record), append(kept, &used)
		}
		if len(kept) == 0 {
			return nil
		}
		if err := r.commit(&b); err != nil {
			return err
		}
		for _, k := range kept {
			r.keyring.set(k)
		}
		return nil
	}})
}
