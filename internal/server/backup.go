package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// backups are taken one at a time: two would read the disk against each other.
type backups struct {
	dir     string
	db      *database
	bus     *bus.Bus
	version string
	clock   clock.Clock
	copying ctxlock.Lock // of an erasure too
	taking  sync.Mutex
}

// Backup writes a backup of the running server.
func (b *backups) Backup(ctx context.Context, w io.Writer, bytesPerSecond int64) error {
	if !b.taking.TryLock() {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "another backup is being taken", Hint: "wait until it is done"}
	}
	defer b.taking.Unlock()
	if err := b.copying.Lock(ctx); err != nil {
		return err
	}
	defer b.copying.Unlock()
	return takeBackup(ctx, w, b.db, b.dir, b.bus, b.version, b.clock, bytesPerSecond)
}

// Restored says where a restored server comes from, and lists from an offset on
// what was uncertain; nil where it was not restored.
func (b *backups) Restored(offset int64, limit int) (from *wire.RestoredFrom, list []wire.Uncertain, next int64, err error) {
	note, err := backup.ReadNote(b.dir)
	if err != nil || note == nil {
		return nil, nil, 0, err
	}
	uncertain, next, err := backup.ReadUncertain(b.dir, offset, limit)
	for _, u := range uncertain {
		list = append(list, wire.Uncertain(u))
	}
	return restoredFrom(note), list, next, err
}

func restoredFrom(n *backup.Note) *wire.RestoredFrom {
	return &wire.RestoredFrom{Backup: n.Backup, Restored: n.Restored, Version: n.Fanfare, Broadcasts: n.Broadcasts, Deliveries: n.Deliveries, Unmatched: n.Unmatched}
}

// stoppedLease is the lease of a bus whose work nobody takes.
const stoppedLease = time.Minute

// BackupStopped writes a backup of the data of a server that does not run. c has
// the data directory, and the database and the bus where these are elsewhere.
func BackupStopped(ctx context.Context, c config.Config, w io.Writer, bytesPerSecond int64, o Options) (err error) {
	dir, nats := c.DataDir, c.NATS
	if err := hasServed(&c); err != nil {
		return err
	}
	unlock, err := datadir.Lock(dir)
	if err != nil {
		if e, ok := errors.AsType[*fanfare.Error](err); ok && e.Code == fanfare.Conflict {
			e.Hint = "leave --stopped out: a backup is taken while the server works"
		}
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	var db *database
	if !c.SQLite() {
		reader := &App{config: c, log: o.Logger, clock: clock.System{}}
		if db, err = reader.openDatabase(ctx, o.Version); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		if was, err := readPair(dir); err != nil || was == nil || was.Identity != db.about().Identity {
			return errors.Join(err, &fanfare.Error{Code: fanfare.Conflict, Message: "the data directory " + dir + " and the database " + db.about().Where + " do not belong together",
				Hint: "name both as the server has them"})
		}
	}
	hops, err := bus.Open(ctx, bus.Options{Dir: filepath.Join(dir, datadir.Bus), URL: nats, Sync: true, Lease: stoppedLease, Logger: o.Logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hops.Close()) }()
	return takeBackup(ctx, w, db, dir, hops, o.Version, clock.System{}, bytesPerSecond)
}

// hasServed refuses what is no data directory of a server with this database.
func hasServed(c *config.Config) error {
	was, err := readPair(c.DataDir)
	if err != nil {
		return err
	}
	_, missing := os.Stat(filepath.Join(c.DataDir, datadir.Control))
	switch {
	case c.SQLite() && was != nil:
		return &fanfare.Error{Code: fanfare.Conflict, Message: c.DataDir + " belongs to the database " + was.Database, Hint: "set FANFARE_DB to its URL"}
	case c.SQLite() && missing != nil:
		return &fanfare.Error{Code: fanfare.NotFound, Message: c.DataDir + " is no data directory: it has no control.db", Hint: "name it with --data-dir"}
	}
	return nil
}

// exportDir is where the files of a backup lie that is taken of a PostgreSQL, in
// the data directory; it goes with the backup, or with the next one.
const exportDir = "backup.export"

// takeBackup takes a backup of files as they lie, of a database (nil: there is
// none) by way of files that are made of it.
func takeBackup(ctx context.Context, w io.Writer, db *database, dir string, hops *bus.Bus, version string, clock clock.Clock, bytesPerSecond int64) (err error) {
	source := backupSource(dir, hops, version, clock)
	if db == nil || db.remote() == nil {
		return backup.Take(ctx, w, source, bytesPerSecond)
	}
	size, err := db.remote().Size(ctx)
	if err != nil {
		return err
	}
	disk := datadir.DiskFloor{Dir: dir}
	if free := disk.Free(); free < size {
		return &fanfare.Error{Code: fanfare.DiskFull, Message: fmt.Sprintf("the disk of %s has %d MB free, and about %d MB are needed while the backup is taken", dir, free>>20, size>>20+1),
			Hint: "free some space"}
	}
	to := filepath.Join(dir, exportDir)
	if err := errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o700)); err != nil { // of one that was killed
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(to)) }()
	into := func(copied func(ctx context.Context, from, to store.Database) error) func(context.Context) error {
		return func(ctx context.Context) error {
			files, err := sqlite.Open(ctx, to, store.Relaxed)
			if err != nil {
				return err
			}
			return errors.Join(copied(ctx, db, files), files.Close())
		}
	}
	source.Export = &backup.Export{Dir: to, Bytes: size, Days: into(move.ExportDays), Control: into(move.ExportControl)}
	return backup.Take(ctx, w, source, bytesPerSecond)
}

func backupSource(dir string, hops *bus.Bus, version string, clock clock.Clock) *backup.Source {
	return &backup.Source{Dir: dir, Version: version, Clock: clock,
		Snapshot: func(path string) (backup.Snapshot, error) { return sqlite.OpenSnapshot(path) },
		Unmatched: func(ctx context.Context, visit func([]byte, int, fanfare.EventSeq) error) error {
			return hops.UnmatchedEvents(ctx, func(seq uint64, group []byte) error {
				events, err := eventgroup.Decode(group, seq)
				if err != nil {
					return err
				}
				again, err := eventgroup.Encode(events...)
				if err != nil {
					return err
				}
				var highest fanfare.EventSeq
				for _, e := range events {
					highest = max(highest, e.Seq)
				}
				return visit(again, len(events), highest)
			})
		},
	}
}
