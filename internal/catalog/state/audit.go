package state

import (
	"context"
	"time"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"
)

// Record keeps a line about a change that is not one of the registry's, such as
// a broadcast that was cancelled, or one of many. It is durable on return.
func (r *Catalog) Record(ctx context.Context, d audit.Operation, detail *audit.Detail) error {
	actor := audit.ActorOf(ctx)
	if actor == nil {
		return nil
	}
	line := audit.NewEntry(actor, d, detail)
	return r.writer.AddEntry(context.WithoutCancel(ctx), &line)
}

// maxAuditScan is how many lines one query looks at.
const maxAuditScan = 200_000

// Audit returns lines, the latest first, and below which id the next page goes
// on, 0 at the end. A page may be short where much was passed by.
func (r *Catalog) Audit(ctx context.Context, q audit.Query) (lines []audit.Entry, next int64, err error) {
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
	err = r.opt.Store.AuditEntries(ctx, from, to, func(line *audit.Entry) bool {
		if len(lines) == q.Limit || scanned == maxAuditScan {
			next = line.ID + 1
			return false
		}
		scanned++
		if q.Matches(line) {
			lines = append(lines, *line)
		}
		return true
	})
	if err != nil {
		return nil, 0, r.readError(err)
	}
	return lines, next, nil
}

// TrimAudit removes the lines from before a time, some at a time.
func (r *Catalog) TrimAudit(ctx context.Context, before time.Time) error {
	for ctx.Err() == nil {
		oldest, _, err := r.opt.Store.AuditBounds(ctx)
		if err != nil || oldest == 0 || oldest >= before.UnixMicro() {
			return err
		}
		err = r.writer.Run(ctx, func() error { return r.writer.Commit(&control.Batch{AuditBefore: before.UnixMicro()}) })
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// StoreKeyUses keeps when each key was used last.
func (r *Catalog) StoreKeyUses(ctx context.Context) error {
	return r.writer.Run(ctx, func() error {
		var b control.Batch
		var kept []*storedKey
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
		if err := r.writer.Commit(&b); err != nil {
			return err
		}
		for _, k := range kept {
			r.keyring.set(k)
		}
		return nil
	})
}
