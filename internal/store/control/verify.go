package control

import (
	"context"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/store"
)

// verifyRows is how many rows a statement of a verification reads: each may have megabytes.
const verifyRows = 8

// Verify verifies the checksums of the values in a control part: files of templates, linked files, and the rows of sends. It changes
// nothing.
func Verify(ctx context.Context, part store.Part, report *checksum.Report) error {
	return part.Read(ctx, func(in store.Session) error {
		tables := store.ControlTables()
		note := func(stored []byte, has, valid bool, d checksum.Damage) {
			switch {
			case !valid:
				report.Damaged(&d)
			case has:
				report.Verified(len(stored))
			default:
				report.Without()
			}
		}
		rowsOfSends := func(column int, what, effect string) func(store.Row) error {
			return func(r store.Row) error {
				stored := r.Bytes(column)
				_, valid := checksum.Verify(0, stored)
				note(stored, checksum.Has(stored), valid, checksum.Damage{Subject: fmt.Sprintf(what, r.Text(0), r.Int64(1)), Effect: effect,
					Restore: "cancel the send with `fanfare sends cancel` and create it again from its file, or restore a backup into another directory with `fanfare restore`"})
				return nil
			}
		}
		for _, of := range []struct {
			table string
			visit func(store.Row) error
		}{
			{"template_files", func(r store.Row) error {
				sum, content := r.Bytes(0), r.Bytes(1)
				found := fanfare.SumOf(content)
				note(content, true, slices.Equal(found[:], sum), checksum.Damage{Subject: fmt.Sprintf("the template file with the SHA-256 %x", sum),
					Effect: "messages of the templates that have the file are parked and not sent", Restore: "restore a backup into another directory with `fanfare restore`, or apply the templates with a changed version of the file"})
				return nil
			}},
			{"linked_files", func(r store.Row) error {
				stored := r.Bytes(4)
				_, valid := checksum.Verify(0, stored)
				note(stored, checksum.Has(stored), valid, checksum.Damage{Subject: fmt.Sprintf("the linked file %x of the service %s", r.Bytes(0), r.Text(1)),
					Effect: "its link shows an error", Restore: "send the message again with its file, or restore a backup into another directory with `fanfare restore`"})
				return nil
			}},
			{"send_rows", rowsOfSends(5, "rows of the send %s (upload %d)", "the send stops before the part that has these rows")},
			{"send_errors", rowsOfSends(3, "errors of the rows of the send %s (upload %d)", "these errors cannot be shown")},
			{"send_parts", rowsOfSends(4, "the outcome of the send %s (part %d)", "the report of the send cannot be shown")},
		} {
			at := slices.IndexFunc(tables, func(t store.Table) bool { return t.Name == of.table })
			if err := tables[at].Visit(in, verifyRows, of.visit); err != nil {
				return fmt.Errorf("table %s: %w", of.table, err)
			}
		}
		return nil
	})
}
