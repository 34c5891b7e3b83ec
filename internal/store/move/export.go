package move

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// ExportDays copies the days of a database into an empty one, while they are written: each
// from its own snapshot, the oldest first. It marks neither database. ExportControl copies the
// control part afterwards, which has the rows that the manifests refer to.
func ExportDays(ctx context.Context, from, to store.Database) error {
	days, err := from.Days(ctx)
	if err != nil {
		return err
	}
	slices.Sort(days)
	for _, of := range days {
		day, err := from.Day(ctx, of, false)
		if fanfare.CodeOf(err) == fanfare.NotFound && err != nil { // its time was over meanwhile
			continue
		}
		if err != nil {
			return err
		}
		target, err := to.Day(ctx, of, true)
		if err != nil {
			return err
		}
		if err := exportPart(ctx, day, target, store.DayTables()); err != nil {
			if fanfare.CodeOf(err) != fanfare.NotFound {
				return err
			}
			if err := to.RemoveDay(ctx, of); err != nil {
				return err
			}
		}
	}
	return nil
}

// ExportSessions copies the sessions of a database as they are at this moment.
func ExportSessions(ctx context.Context, from, to store.Database) error {
	return exportPart(ctx, from.Sessions(), to.Sessions(), store.SessionTables())
}

// ExportMailboxes copies the mailboxes of a database as they are at this moment.
func ExportMailboxes(ctx context.Context, from, to store.Database) error {
	return exportPart(ctx, from.Mailboxes(), to.Mailboxes(), store.MailboxTables())
}

// ExportControl copies the control part of a database as it is at this moment.
func ExportControl(ctx context.Context, from, to store.Database) error {
	return exportPart(ctx, from.Control(), to.Control(), store.ControlTables())
}

func exportPart(ctx context.Context, from, to store.Part, tables []store.Table) error {
	return from.Snapshot(ctx, func(s store.Session) error {
		for i := range tables {
			if err := clearTables(ctx, to, tables[i:i+1]); err != nil { // of what is there from the start, or of a moment before
				return err
			}
			if err := copyTable(ctx, s, to, &tables[i], nil); err != nil {
				return err
			}
		}
		return nil
	})
}
