package deep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/admin/doctor"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/control"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// maxFindings limits the findings of one check that are listed. The others are counted.
const maxFindings = 1000

// Options say what to verify.
type Options struct {
	Config  config.Config
	Backups []string // files

	// Progress receives what is being verified, and how far it is in percent, or -1.
	Progress func(what string, percent int)
}

// Verify verifies everything, and adds its findings to a report. It returns an error only if ctx ends.
func Verify(ctx context.Context, o Options, r *doctor.Report) error {
	v := &verifier{Options: o, report: r}
	if o.Config.SQLite() {
		v.sqlite(ctx)
	} else {
		v.postgres(ctx)
	}
	v.bus()
	for _, file := range o.Backups {
		v.backup(file)
	}
	return ctx.Err()
}

type verifier struct {
	Options
	report *doctor.Report

	values, without, damaged int // of the part that is being verified
	bytes                    int64
}

func (v *verifier) ok(check, format string, args ...any) {
	v.report.Add(doctor.Finding{Check: check, Level: doctor.OK, What: fmt.Sprintf(format, args...)})
}

func (v *verifier) wrong(check, what, mend string) {
	v.report.Add(doctor.Finding{Check: check, Level: doctor.Wrong, What: what, Mend: mend})
}

const restoreDatabase = "check the disk; stop the server, keep a copy of its data directory, and restore the latest valid backup into another directory with `fanfare restore`"

// sqlite verifies the database files of the data directory, and then the values in them.
func (v *verifier) sqlite(ctx context.Context) {
	files, err := sqlite.Look(ctx, v.Config.DataDir)
	if err != nil {
		v.wrong("deep: database", "the database files cannot be examined: "+err.Error(), restoreDatabase)
		return
	}
	if len(files) == 0 {
		v.ok("deep: database", "there are no database files yet")
		return
	}
	sound := 0
	for i := range files {
		f := &files[i]
		v.Progress("the structure of "+f.Name, 100*i/len(files))
		problems := 0
		problem := func(text string) {
			if problems++; problems <= maxFindings {
				v.report.Add(doctor.Finding{Check: "deep: structure", Level: doctor.Wrong, File: f.Name, What: f.Name + ": " + text, Mend: restoreDatabase})
			}
		}
		if err := sqlite.CheckStructure(ctx, filepath.Join(v.Config.DataDir, f.Name), problem); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problem("it cannot be read: " + err.Error())
		}
		if problems == 0 {
			sound++
		}
	}
	if sound == len(files) {
		v.ok("deep: structure", "SQLite finds no error in %d database files", sound)
	}
	_ = sqlite.Inspect(v.Config.DataDir, func(db store.Database) error { // its errors are findings
		v.contents(ctx, db)
		return nil
	})
}

// postgres verifies the tables and indexes of the database, and then the values in them.
func (v *verifier) postgres(ctx context.Context) {
	v.Progress("the tables of PostgreSQL", -1)
	problems := 0
	structure, err := postgres.CheckStructure(ctx, v.Config.DB, func(relation string) { v.Progress("the relation "+relation, -1) }, func(p postgres.StructureProblem) {
		mend := "restore a backup into another directory with `fanfare restore`, or fail over to a standby; run pg_amcheck for details"
		what := fmt.Sprintf("the table %s: %s", p.Relation, p.Text)
		if p.Index {
			mend, what = "REINDEX INDEX CONCURRENTLY "+p.Relation+"; then run this command again", fmt.Sprintf("the index %s: %s", p.Relation, p.Text)
		}
		if problems++; problems <= maxFindings {
			v.report.Add(doctor.Finding{Check: "deep: structure", Level: doctor.Wrong, Table: p.Relation, What: what, Mend: mend})
		}
	})
	if err != nil {
		v.wrong("deep: structure", "the database cannot be verified: "+err.Error(), "check that PostgreSQL is running and can be reached from this machine")
		return
	}
	warn := func(what, mend string) {
		v.report.Add(doctor.Finding{Check: "deep: structure", Level: doctor.Warning, What: what, Mend: mend})
	}
	switch {
	case !structure.DataChecksums:
		warn("PostgreSQL runs without data checksums: it does not notice flipped bits in values that have no checksum of Fanfare, such as addresses and subscriptions", "stop PostgreSQL and run pg_checksums --enable")
	case structure.Failures > 0:
		v.wrong("deep: structure", fmt.Sprintf("PostgreSQL has found %d pages with wrong checksums since its statistics were reset", structure.Failures), "look for \"invalid page\" in the log of PostgreSQL, and stop PostgreSQL and run pg_checksums --check")
	}
	switch {
	case !structure.Amcheck:
		warn("the extension amcheck is not installed: the indexes were not verified", "run CREATE EXTENSION amcheck as a superuser in this database; packages of PostgreSQL call it postgresql-contrib")
	case !structure.Permitted:
		warn("this user may not call the functions of amcheck: the indexes were not verified", "as a superuser, run GRANT EXECUTE ON FUNCTION bt_index_check(regclass, boolean), verify_heapam(regclass, boolean, boolean, text, bigint, bigint) TO the user of the URL")
	}
	if problems == 0 {
		v.ok("deep: structure", "PostgreSQL finds no error in %d tables and %d indexes; pages that it has in memory were not read from the disk", structure.Tables, structure.Indexes)
	}
	err = postgres.Inspect(ctx, v.Config.DB, func(db store.Database) error {
		v.contents(ctx, db)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.wrong("deep: values", "the database cannot be read: "+err.Error(), restoreDatabase)
	}
}

// contents verifies the values that have checksums.
func (v *verifier) contents(ctx context.Context, db store.Database) {
	v.part("templates, linked files and sends", -1, func(report *checksum.Report) error { return control.Verify(ctx, db.Control(), report) })
	v.part("mailboxes", -1, func(report *checksum.Report) error { return mailbox.Verify(ctx, db.Mailboxes(), report) })
	days, err := db.Days(ctx)
	if err != nil {
		v.wrong("deep: values", "the days cannot be listed: "+err.Error(), restoreDatabase)
		return
	}
	record := deliveries.New(db)
	for i, day := range days {
		v.part("the day "+day.String(), 100*i/len(days), func(report *checksum.Report) error { return record.Verify(ctx, day, report) })
	}
}

// part verifies the values of one part.
func (v *verifier) part(name string, percent int, verify func(*checksum.Report) error) {
	v.Progress("the values of "+name, percent)
	v.values, v.without, v.damaged, v.bytes = 0, 0, 0, 0
	err := verify(&checksum.Report{
		Verified: func(n int) { v.values, v.bytes = v.values+1, v.bytes+int64(n) },
		Without:  func() { v.without++ },
		Damaged: func(d *checksum.Damage) {
			if v.damaged++; v.damaged <= maxFindings {
				v.report.Add(doctor.Finding{Check: "deep: values", Level: doctor.Wrong, Event: d.Event, What: d.Subject + " is damaged: " + d.Effect, Mend: d.Restore})
			}
		},
	})
	if v.damaged > maxFindings {
		v.wrong("deep: values", fmt.Sprintf("%s: %d more values are damaged", name, v.damaged-maxFindings), restoreDatabase)
	}
	switch {
	case err != nil && (errors.Is(err, fs.ErrNotExist) || fanfare.CodeOf(err) == fanfare.NotFound): // not created yet, or removed meanwhile
		return
	case err != nil:
		mend := restoreDatabase
		if strings.Contains(err.Error(), "no such column") || strings.Contains(err.Error(), "no such table") {
			mend = "if an older version wrote the data, start the server once: it upgrades them"
		}
		v.wrong("deep: values", name+" cannot be read: "+err.Error(), mend)
	case v.damaged == 0 && v.without > 0:
		v.ok("deep: values", "%s: %d values match their checksums; %d were stored by an older version without checksums", name, v.values, v.without)
	case v.damaged == 0:
		v.ok("deep: values", "%s: %d values match their checksums", name, v.values)
	}
}

// bus verifies the messages of the embedded bus, if no server uses it.
func (v *verifier) bus() {
	for _, name := range []string{datadir.Bus, datadir.BusCluster} {
		dir := filepath.Join(v.Config.DataDir, name)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		unlock, err := datadir.Lock(v.Config.DataDir)
		if fanfare.CodeOf(err) == fanfare.Conflict && err != nil {
			v.report.Add(doctor.Finding{Check: "deep: bus", Level: doctor.Warning, What: "the server is running: its bus was not verified", Mend: "stop the server and run this command again"})
			return
		}
		if err != nil {
			v.wrong("deep: bus", "the bus cannot be verified: "+err.Error(), "run this command as the user that runs the server")
			return
		}
		v.busFiles(name, dir)
		if err := unlock(); err != nil {
			v.wrong("deep: bus", "the data directory cannot be unlocked: "+err.Error(), "")
		}
	}
}

func (v *verifier) busFiles(name, dir string) {
	v.Progress("the bus", -1)
	messages, damaged := 0, 0
	err := bus.VerifyFiles(dir, bus.FileReport{
		Verified: func(n int, _ int64) { messages += n },
		Damaged: func(d *bus.FileDamage) {
			if damaged++; damaged <= maxFindings {
				v.report.Add(findingOf(name, d))
			}
		},
	})
	switch {
	case err != nil:
		v.wrong("deep: bus", "the bus cannot be read: "+err.Error(), "check the disk")
	case damaged == 0:
		v.ok("deep: bus", "%d messages in %s match their hashes", messages, name)
	}
}

// findingOf describes a damaged file of the bus.
func findingOf(folder string, d *bus.FileDamage) doctor.Finding {
	f := doctor.Finding{Check: "deep: bus", Level: doctor.Wrong, File: filepath.Join(folder, d.File), Stream: d.Stream, Sequence: d.Sequence}
	where := fmt.Sprintf("%s, stream %s", f.File, d.Stream)
	if d.Consumer != "" {
		where += ", consumer " + d.Consumer
	}
	switch {
	case d.Rebuilt:
		f.Level, f.What, f.Mend = doctor.Warning, where+": "+d.Text, "start the server: it rebuilds the index from the messages"
	case d.Sequence == 0:
		f.What = where + ": " + d.Text + ": the server cannot use the " + map[bool]string{true: "stream", false: "consumer"}[d.Consumer == ""]
		f.Mend = "restore the file from a copy of the data directory, or restore a backup into another directory with `fanfare restore`"
	default:
		f.What = fmt.Sprintf("%s, sequence %d: %s", where, d.Sequence, d.Text)
		if d.Last > 0 {
			f.What += fmt.Sprintf("; the messages after it, up to sequence %d, can be lost at the next start", d.Last)
		}
		if bus.IsEvents(d.Stream) {
			first := fanfare.NewEventSeq(d.Sequence, 0)
			f.What += fmt.Sprintf("; the events that it contains, from the event sequence %x, are lost if they were not matched before", uint64(first))
			f.Mend = "publish the events of this time again: those that were accepted are recognized by their ids; keep a copy of the file"
		} else {
			f.Mend = "stop the server, move the folder " + folder + " away, and start the server: it creates new batches for all open deliveries, but events that were not matched yet are lost with the folder"
		}
	}
	return f
}

// backup verifies a backup file.
func (v *verifier) backup(file string) {
	m, err := backup.Verify(file, func(done, total int64) { v.Progress("the backup "+file, int(100*done/max(1, total))) })
	if err != nil {
		hint := "use another backup; this one cannot be restored"
		if told, ok := errors.AsType[*fanfare.Error](err); ok && told.Hint != "" {
			hint = told.Hint
		}
		v.report.Add(doctor.Finding{Check: "deep: backup", Level: doctor.Wrong, File: file, What: file + ": " + withoutHint(err), Mend: hint})
		return
	}
	v.ok("deep: backup", "%s is complete: %d parts match their hashes", file, len(m.Parts))
}

func withoutHint(err error) string {
	if told, ok := errors.AsType[*fanfare.Error](err); ok {
		return told.Message
	}
	return err.Error()
}
