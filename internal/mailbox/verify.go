package mailbox

import (
	"context"
	"fmt"
	"slices"

	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/mailbox/delta"
	"fanfare.dev/fanfare/internal/store"
)

// verifyRows is how many rows a statement of a verification reads: each may have megabytes.
const verifyRows = 8

const restoreMessage = "restore a backup into another directory with `fanfare restore`, export the mailbox there with `fanfare mailbox export`, and import it with `fanfare mailbox import`"

// Verify verifies the hashes of the stored messages of a part, and the checksums of the blocks of messages that are not stored one by one yet. It
// changes nothing.
func Verify(ctx context.Context, part store.Part, report *checksum.Report) error {
	return part.Read(ctx, func(in store.Session) error {
		users, err := usersOfContents(in)
		if err != nil {
			return err
		}
		bases := map[int64][]byte{} // those of blocks and deltas, which are few
		content := func(id int64) (data []byte, err error) {
			err = in.Each("content_data", func(r store.Row) error { data = r.Bytes(0); return nil }, id)
			return data, err
		}
		if err := visit(in, "contents", func(r store.Row) error {
			if base := r.Int64(3); base != 0 {
				bases[base] = nil
			}
			return nil
		}); err != nil {
			return err
		}
		for base := range bases {
			if bases[base], err = content(base); err != nil {
				return err
			}
		}
		type row struct {
			id, base int64
			hash     []byte
		}
		var rows []row
		if err := visit(in, "contents", func(r store.Row) error {
			rows = append(rows, row{r.Int64(0), r.Int64(3), r.Bytes(1)})
			return nil
		}); err != nil {
			return err
		}
		for i := range rows {
			data, err := content(rows[i].id)
			if err != nil {
				return err
			}
			if base := rows[i].base; base != 0 {
				data, err = delta.Expand(nil, bases[base], data)
			}
			if err == nil && sameHash(data, rows[i].hash) {
				report.Verified(len(data))
				continue
			}
			users := users[rows[i].id]
			d := &checksum.Damage{Subject: fmt.Sprintf("the stored message or upload %d", rows[i].id), Effect: "mail programs get an error for it", Restore: restoreMessage, Count: len(users)}
			if len(users) > 0 {
				d.Subject += " (" + users[0]
				if len(users) > 1 {
					d.Subject += fmt.Sprintf(" and %d more", len(users)-1)
				}
				d.Subject += ")"
			}
			report.Damaged(d)
		}
		return visit(in, "inbox_block_data", func(r store.Row) error {
			stored := r.Bytes(1)
			switch members, err := decodeBlock(stored); {
			case err != nil:
				report.Damaged(&checksum.Damage{Subject: fmt.Sprintf("the block %d of inbox messages", r.Int64(0)), Restore: restoreMessage,
					Effect: "the mailboxes of its recipients cannot be opened by mail programs"})
			case checksum.Has(stored):
				report.Verified(len(stored) * min(1, len(members)))
			default:
				report.Without()
			}
			return nil
		})
	})
}

// usersOfContents returns the messages of each content, as text.
func usersOfContents(in store.Session) (map[int64][]string, error) {
	users := map[int64][]string{}
	return users, visit(in, "messages", func(r store.Row) error {
		content := r.Int64(11)
		users[content] = append(users[content], fmt.Sprintf("email %d of the account %d", r.Int64(1), r.Int64(0)))
		return nil
	})
}

func visit(in store.Session, table string, row func(store.Row) error) error {
	tables := store.MailboxTables()
	at := slices.IndexFunc(tables, func(t store.Table) bool { return t.Name == table })
	if err := tables[at].Visit(in, verifyRows, row); err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	return nil
}
