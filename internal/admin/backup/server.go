package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/database"
	"fanfare.dev/fanfare/internal/store/move"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// A Server takes backups of a running server, one at a time.
type Server struct {
	Dir       string
	DB        *database.DB
	Bus       *bus.Bus
	Version   string
	Clock     clock.Clock
	Exclusive ctxlock.Lock // held while a backup is taken; erasures and moves hold it too
	running   sync.Mutex
}

// Backup writes a backup of the running server.
func (s *Server) Backup(ctx context.Context, w io.Writer, bytesPerSecond int64) error {
	if !s.running.TryLock() {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "another backup is running", Hint: "wait until it is finished"}
	}
	defer s.running.Unlock()
	if err := s.Exclusive.Lock(ctx); err != nil {
		return err
	}
	defer s.Exclusive.Unlock()
	return takeFrom(ctx, w, s.DB, s.Dir, s.Bus, s.Version, s.Clock, bytesPerSecond)
}

// Restored returns the backup that a server was restored from and a page of the uncertain broadcasts, or nil if the server was not restored.
func (s *Server) Restored(offset int64, limit int) (from *wire.RestoredFrom, list []wire.Uncertain, next int64, err error) {
	note, err := ReadNote(s.Dir)
	if err != nil || note == nil {
		return nil, nil, 0, err
	}
	uncertain, next, err := ReadUncertain(s.Dir, offset, limit)
	for _, u := range uncertain {
		list = append(list, wire.Uncertain(u))
	}
	return note.Wire(), list, next, err
}

// Wire returns the note in the format of the API.
func (n *Note) Wire() *wire.RestoredFrom {
	return &wire.RestoredFrom{Backup: n.Backup, Restored: n.Restored, Version: n.Fanfare, Broadcasts: n.Broadcasts, Deliveries: n.Deliveries, Unmatched: n.Unmatched}
}

// stoppedLease is the lease of a bus without consumers.
const stoppedLease = time.Minute

// TakeStopped writes a backup of the data of a stopped server. c specifies the data directory and, if they are
// elsewhere, the database and the bus.
func TakeStopped(ctx context.Context, c config.Config, w io.Writer, bytesPerSecond int64, version string, log *slog.Logger) (err error) {
	dir, nats := c.DataDir, c.NATS
	if err := checkDataDir(&c); err != nil {
		return err
	}
	unlock, err := datadir.Lock(dir)
	if err != nil {
		if e, ok := errors.AsType[*fanfare.Error](err); ok && e.Code == fanfare.Conflict {
			e.Hint = "omit --stopped: a running server can be backed up"
		}
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	var db *database.DB
	if !c.SQLite() {
		if db, err = database.Open(ctx, &c, version, log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		if stored, err := database.ReadPairing(dir); err != nil || stored == nil || stored.Identity != db.About().Identity {
			return errors.Join(err, &fanfare.Error{Code: fanfare.Conflict, Message: "the data directory " + dir + " and the database " + db.About().Where + " do not belong together",
				Hint: "set data_dir and db to the values of the same server"})
		}
	}
	if c.EmbeddedCluster() || datadir.Has(dir, datadir.BusCluster) {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the bus of this node is stored by all nodes of its cluster, so it cannot be read while this node is stopped",
			Hint: "start the node, and omit --stopped"}
	}
	events, err := bus.Open(ctx, bus.Options{Dir: filepath.Join(dir, datadir.Bus), URL: nats, Sync: true, Lease: stoppedLease, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, events.Close()) }()
	return takeFrom(ctx, w, db, dir, events, version, clock.System{}, bytesPerSecond)
}

// checkDataDir refuses a directory that is not the data directory of a server with this database.
func checkDataDir(c *config.Config) error {
	stored, err := database.ReadPairing(c.DataDir)
	if err != nil {
		return err
	}
	_, missing := os.Stat(filepath.Join(c.DataDir, datadir.Control))
	switch {
	case c.SQLite() && stored != nil:
		return &fanfare.Error{Code: fanfare.Conflict, Message: c.DataDir + " belongs to the database " + stored.Database, Hint: "set FANFARE_DB to its URL"}
	case c.SQLite() && missing != nil:
		return &fanfare.Error{Code: fanfare.NotFound, Message: c.DataDir + " is not a data directory: it has no control.db", Hint: "set --data-dir"}
	}
	return nil
}

// exportDir is the folder in the data directory for the files that a backup of PostgreSQL is made from. It is removed at the end of the
// backup, or before the next one.
const exportDir = "backup.export"

// takeFrom takes a backup of the files of the data directory, or of files that it exports from PostgreSQL.
func takeFrom(ctx context.Context, w io.Writer, db *database.DB, dir string, events *bus.Bus, version string, clock clock.Clock, bytesPerSecond int64) (err error) {
	source := newSource(dir, events, version, clock)
	if db == nil || db.Postgres() == nil {
		return Take(ctx, w, source, bytesPerSecond)
	}
	size, err := db.Postgres().Size(ctx)
	if err != nil {
		return err
	}
	disk := datadir.DiskFloor{Dir: dir}
	if free := disk.Free(); free < size {
		return &fanfare.Error{Code: fanfare.DiskFull, Message: fmt.Sprintf("the disk of %s has %d MB free, but about %d MB are needed while the backup is taken", dir, free>>20, size>>20+1),
			Hint: "free some space"}
	}
	to := filepath.Join(dir, exportDir)
	if err := errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o700)); err != nil { // left by a killed backup
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
	source.Export = &Export{Dir: to, Bytes: size, Days: into(move.ExportDays), Sessions: into(move.ExportSessions), Mailboxes: into(move.ExportMailboxes), Control: into(move.ExportControl)}
	return Take(ctx, w, source, bytesPerSecond)
}

func newSource(dir string, events *bus.Bus, version string, clock clock.Clock) *Source {
	return &Source{Dir: dir, Version: version, Clock: clock,
		Snapshot: func(path string) (Snapshot, error) { return sqlite.OpenSnapshot(path) },
		Unmatched: func(ctx context.Context, visit func([]byte, int, fanfare.EventSeq) error) error {
			return events.UnmatchedEvents(ctx, func(seq uint64, group []byte) error {
				decoded, err := eventgroup.Decode(group, seq)
				if err != nil {
					return err
				}
				again, err := eventgroup.Encode(decoded...)
				if err != nil {
					return err
				}
				var highest fanfare.EventSeq
				for _, e := range decoded {
					highest = max(highest, e.Seq)
				}
				return visit(again, len(decoded), highest)
			})
		},
	}
}
