package move

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// ExportDays copies the days of a database into one that is empty, while they are
// written: each as it is at a moment of its own, the oldest first. Neither
// database is marked. What a manifest of a day refers to is in the control part
// that is copied after it, by ExportControl.
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
