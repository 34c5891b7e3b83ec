package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/pipeline/due"
)

// lostBusFile marks a data directory whose bus was lost while the record of what
// was sent was not: with files it was removed by hand, with a database the whole
// directory may be new. What was accepted and not matched is gone with it; what
// was open is cut again by the start that finds the mark.
const lostBusFile = "bus.lost"

// lostBus reports whether what is open has to be cut again, and leaves the mark
// where the embedded bus is about to be made beside a record that has events.
func lostBus(dir string, external bool, highest fanfare.EventSeq) (bool, error) {
	mark := filepath.Join(dir, lostBusFile)
	if _, err := os.Lstat(mark); err == nil {
		return true, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	_, err := os.Lstat(filepath.Join(dir, datadir.Bus))
	if external || highest == 0 || !errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, os.WriteFile(mark, nil, 0o600)
}

// mend puts back to work what was open, and returns how many broadcasts that
// were. It can be repeated, after a kill in the middle.
func (r *restoring) mend(ctx context.Context, days []fanfare.Day, waiting *due.Scheduler) (broadcasts int, err error) {
	for _, day := range days {
		if err := r.day(ctx, day, func(*backup.Uncertain) error { broadcasts++; return nil }); err != nil {
			return broadcasts, err
		}
	}
	// The database may be of an earlier moment than the mails that name its places.
	if err := r.registry.SkipPlaces(ctx, restoreSkipsPlaces); err != nil {
		return broadcasts, err
	}
	if err := waiting.ReleaseHeld(ctx, func(*fanfare.Batch) bool { return false }); err != nil {
		return broadcasts, err
	}
	return broadcasts, os.Remove(filepath.Join(r.dir, lostBusFile))
}
