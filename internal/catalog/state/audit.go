package state

import (
	"context"
	"time"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"
)

// Record adds an entry about an action outside the registry, such as a cancelled broadcast. It is
// durable when it returns.
func (r *Catalog) Record(ctx context.Context, d audit.Operation, detail *audit.Detail) error {
	actor := audit.ActorOf(ctx)
	if actor == nil {
		return nil
	}
	line := audit.NewEntry(actor, d, detail)
	return r.writer.AddEntry(context.WithoutCancel(ctx), &line)
}

// maxAuditScan is the maximum number of entries that one query reads.
const maxAuditScan = 200_000

// Audit returns entries, the latest first, and the id before which the next page begins, 0 at the
// end. A page may be short if the filter skips many entries.
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

// TrimAudit deletes entries from before a time, a limited number per call.
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

// StoreKeyUses stores the times of the last use of keys.
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
