package deliveries

import (
	"context"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/store"
)

// verifyRows is how many rows a statement of a verification reads: each may have a megabyte.
const verifyRows = 64

const (
	restoreEvent = "publish the event again if its recipients must still get it, or restore a backup into another directory with `fanfare restore` and read it there; then run `fanfare cancel --broadcast EVENT`, and `fanfare parked drop` for its parked work"
	restoreTable = "check the disk, and restore a backup into another directory with `fanfare restore`, or fail over to a standby of PostgreSQL"
	restoreItem  = "restore a backup into another directory with `fanfare restore` if you need the digest; drop its parked work with `fanfare parked drop`"
	restoreFile  = "send the message again with its files, or restore a backup into another directory with `fanfare restore`"
)

// A verification reads all values of a day that have checksums.
type verification struct {
	in     store.Session
	of     fanfare.Day
	report *checksum.Report
	files  map[fanfare.Sum][]string // events of the files of messages
}

// Verify verifies the checksums of all values of a day. It changes nothing, and reads the database as it is at each statement.
func (s *Store) Verify(ctx context.Context, of fanfare.Day, report *checksum.Report) error {
	return s.read(ctx, of, func(in store.Session) error {
		v := &verification{in: in, of: of, report: report, files: map[fanfare.Sum][]string{}}
		tables := store.DayTables()
		for _, of := range []struct {
			table string
			visit func(store.Row) error
		}{
			{"broadcasts", v.event}, {"manifests", v.manifest}, {"gathered", v.gathered}, {"items", v.item}, {"parked", v.parked}, {"filter_answers", v.filterAnswers},
		} {
			at := slices.IndexFunc(tables, func(t store.Table) bool { return t.Name == of.table })
			if err := tables[at].Visit(in, verifyRows, of.visit); err != nil {
				if ctx.Err() != nil || fanfare.CodeOf(err) == fanfare.NotFound {
					return err
				}
				v.unreadable(of.table, err)
			}
		}
		return v.messageFiles()
	})
}

// unreadable reports a table of which the database cannot read all rows, and which events are affected, if that can be found.
func (v *verification) unreadable(table string, cause error) {
	v.report.Damaged(&checksum.Damage{Subject: fmt.Sprintf("the table %s of the day %s", table, v.of), Effect: "the database cannot read it: " + cause.Error(), Restore: restoreTable})
	statements := map[string]string{"broadcasts": "posted", "manifests": "manifests_of_event"}
	if statements[table] == "" {
		return
	}
	tables := store.DayTables()
	var seqs []fanfare.EventSeq
	at := slices.IndexFunc(tables, func(t store.Table) bool { return t.Name == "frozen" })
	if err := tables[at].Visit(v.in, 1000, func(r store.Row) error {
		seqs = append(seqs, fanfare.EventSeq(r.Int64(1)))
		return nil
	}); err != nil {
		return
	}
	for _, seq := range seqs {
		args := []any{int64(seq)}
		if table == "manifests" {
			args = eventManifests(seq)
		}
		if err := v.in.Each(statements[table], func(store.Row) error { return nil }, args...); err != nil {
			v.report.Damaged(&checksum.Damage{Subject: fmt.Sprintf("the event %s in the table %s", v.name(seq), table), Event: v.name(seq),
				Effect: "those of its deliveries that are not settled are parked and not sent", Restore: restoreEvent})
		}
	}
}

func (v *verification) note(stored int, has, valid bool, damage func() *checksum.Damage) {
	switch {
	case !valid:
		v.report.Damaged(damage())
	case has:
		v.report.Verified(stored)
	default:
		v.report.Without()
	}
}

func (v *verification) name(seq fanfare.EventSeq) string {
	return fanfare.EventRef{Day: v.of, Seq: seq}.String()
}

func (v *verification) event(r store.Row) error {
	seq, text := fanfare.EventSeq(r.Int64(0)), r.Bytes(3)
	var posted fanfare.AcceptedEvent
	err := decodePosted(fanfare.EventRef{Day: v.of, Seq: seq}, text, &posted)
	v.note(len(text), checksum.HasJSON(text), err == nil, func() *checksum.Damage {
		return &checksum.Damage{Subject: fmt.Sprintf("the event %s (service %s, topic %q)", v.name(seq), r.Text(1), r.Text(2)), Event: v.name(seq), Count: int(r.Int64(5)),
			Effect: fmt.Sprintf("of its %d deliveries, those that are not settled are parked and not sent; its content cannot be shown", r.Int64(5)), Restore: restoreEvent}
	})
	if err == nil && posted.Direct != nil {
		for i := range posted.Direct.Files {
			sum := posted.Direct.Files[i].Sum
			v.files[sum] = append(v.files[sum], v.name(seq))
		}
	}
	return nil
}

func (v *verification) manifest(r store.Row) error {
	id, stored := fanfare.ManifestID(r.Int64(0)), r.Bytes(1)
	_, err := decodeManifest(v.of, id, stored)
	v.note(len(stored), checksum.Has(stored), err == nil, func() *checksum.Damage {
		return &checksum.Damage{Subject: fmt.Sprintf("the manifest %x of the event %s", uint64(id), v.name(id.Event())), Event: v.name(id.Event()),
			Effect: "those of its deliveries that are not settled are parked and not sent; its recipients cannot be shown", Restore: restoreEvent}
	})
	return nil
}

func (v *verification) gathered(r store.Row) error {
	id, stored := fanfare.ManifestID(r.Int64(2)), r.Bytes(4)
	_, err := decodeManifest(v.of, id, stored)
	v.note(len(stored), checksum.Has(stored), err == nil, func() *checksum.Damage {
		return &checksum.Damage{Subject: fmt.Sprintf("the manifest %x of the event %s, which waits for the digest of the slot %d due at %s", uint64(id), v.name(id.Event()), r.Int64(0), second(r.Int64(1)).Format("2006-01-02 15:04:05Z07:00")),
			Event: v.name(id.Event()), Count: int(r.Int64(3)),
			Effect: fmt.Sprintf("the digest is parked: its recipients, %d of this event, do not get it", r.Int64(3)), Restore: restoreItem}
	})
	return nil
}

func (v *verification) item(r store.Row) error {
	run, number, text := fanfare.EventRef{Day: v.of, Seq: fanfare.EventSeq(r.Int64(0))}, uint32(r.Int64(1)), r.Bytes(3)
	_, err := decodeItem(run, number, fanfare.EventSeq(r.Int64(2)), text)
	v.note(len(text), checksum.HasJSON(text), err == nil, func() *checksum.Damage {
		return &checksum.Damage{Subject: fmt.Sprintf("the event with the number %d of the digest %s", number, run), Event: run.String(),
			Effect: "the digests that report the event and are not sent yet are parked", Restore: restoreItem}
	})
	return nil
}

func (v *verification) parked(r store.Row) error {
	seq, stored := r.Int64(2), r.Bytes(7)
	_, valid := checksum.Verify(seq, stored)
	v.note(len(stored), checksum.Has(stored), valid, func() *checksum.Damage {
		id := parkedID(v.of, r.Int64(0))
		return &checksum.Damage{Subject: fmt.Sprintf("the parked work %s (%s of the event %s)", id, r.Text(1), v.name(fanfare.EventSeq(seq))), Event: v.name(fanfare.EventSeq(seq)),
			Effect: "it cannot be tried again", Restore: "publish its events again, and run `fanfare parked drop " + id + "`"}
	})
	return nil
}

func (v *verification) filterAnswers(r store.Row) error {
	id, stored := fanfare.ManifestID(r.Int64(0)), r.Bytes(3)
	err := eachFilterAnswer(id, stored, uint32(r.Int64(1)), uint32(r.Int64(2)), func(uint32, FilterAnswer) {})
	v.note(len(stored), checksum.Has(stored), err == nil, func() *checksum.Damage {
		return &checksum.Damage{Subject: fmt.Sprintf("answers of a filter for the manifest %x of the event %s", uint64(id), v.name(id.Event())), Event: v.name(id.Event()),
			Effect: "those of its deliveries that are not settled are parked and not sent", Restore: restoreEvent}
	})
	return nil
}

// messageFiles verifies the files of the messages of the day. They are encrypted, and only the events have the keys.
func (v *verification) messageFiles() error {
	for sum, events := range v.files {
		found, valid := false, false
		size := 0
		err := v.in.Each("message_file", func(r store.Row) error {
			content := r.Bytes(0)
			found, size = true, len(content)
			if err := crypt(sum, content); err != nil {
				return err
			}
			valid = fanfare.SumOf(content) == sum
			return nil
		}, filedUnder(sum))
		if err != nil {
			return err
		}
		if !found { // it was stored on the day before
			continue
		}
		v.note(size, true, valid, func() *checksum.Damage {
			return &checksum.Damage{Subject: fmt.Sprintf("a file of the event %s (SHA-256 %s)", events[0], sum), Event: events[0],
				Effect: fmt.Sprintf("the messages of %d events that have the file and are not settled are parked and not sent", len(events)), Restore: restoreFile}
		})
	}
	return nil
}
