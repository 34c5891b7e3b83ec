package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/api/wire"
	"fanfare.dev/fanfare/internal/backup"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/collect"
	"fanfare.dev/fanfare/internal/kit"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// backups are taken one at a time: two would read the disk against each other.
type backups struct {
	dir     string
	bus     *bus.Bus
	version string
	clock   kit.Clock
	copying turn // of an erasure too
	taking  sync.Mutex
}

// A turn is had by one at a time: make it with room for one.
type turn chan struct{}

// take waits for the turn until ctx ends.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) leave() { <-t }

// Backup writes a backup of the running server.
func (b *backups) Backup(ctx context.Context, w io.Writer, bytesPerSecond int64) error {
	if !b.taking.TryLock() {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "another backup is being taken", Hint: "wait until it is done"}
	}
	defer b.taking.Unlock()
	if err := b.copying.take(ctx); err != nil {
		return err
	}
	defer b.copying.leave()
	return backup.Take(ctx, w, backupSource(b.dir, b.bus, b.version, b.clock), bytesPerSecond)
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

// BackupStopped writes a backup of the data directory of a server that does not
// run; nats is the URL of its bus, empty for the one in the directory.
func BackupStopped(ctx context.Context, dir, nats string, w io.Writer, bytesPerSecond int64, o Options) (err error) {
	if _, err := os.Stat(filepath.Join(dir, "control.db")); err != nil {
		return &fanfare.Error{Code: fanfare.NotFound, Message: dir + " is no data directory: it has no control.db", Hint: "name it with --data-dir"}
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	hops, err := bus.Open(ctx, bus.Options{Dir: filepath.Join(dir, busDir), URL: nats, Sync: true, Lease: stoppedLease, Logger: o.Logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hops.Close()) }()
	return backup.Take(ctx, w, backupSource(dir, hops, o.Version, kit.System{}), bytesPerSecond)
}

func backupSource(dir string, hops *bus.Bus, version string, clock kit.Clock) *backup.Source {
	return &backup.Source{Dir: dir, Version: version, Clock: clock,
		Snapshot: func(path string) (backup.Snapshot, error) { return sqlite.OpenSnapshot(path) },
		Unmatched: func(ctx context.Context, visit func([]byte, int, fanfare.EventSeq) error) error {
			return hops.UnmatchedEvents(ctx, func(seq uint64, group []byte) error {
				events, err := collect.Decode(group, seq)
				if err != nil {
					return err
				}
				again, err := collect.Encode(events...)
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
