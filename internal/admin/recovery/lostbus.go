package recovery

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/durablefile"
)

// lostBusFile marks a data directory whose bus was lost although the record of deliveries was not: the folder of the
// bus was removed, or a new directory is used with an existing PostgreSQL database. Events that were accepted but not
// matched are lost with the bus. The start that finds the mark creates new batches for the open deliveries.
const lostBusFile = "bus.lost"

// BusLost reports whether the open deliveries need new batches. It leaves the mark if the embedded bus does not exist
// yet and the record has events.
func BusLost(dir string, external bool, highest fanfare.EventSeq) (bool, error) {
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
	return true, MarkBusLost(dir)
}

// MarkBusLost leaves the mark. A loss of power in durability relaxed has left batches on the bus that do not agree with the record.
func MarkBusLost(dir string) error { return durablefile.Write(filepath.Join(dir, lostBusFile), nil) }

// Resumer returns held batches to the bus, except those for which held is true.
type Resumer interface {
	ReleaseHeld(ctx context.Context, held func(*fanfare.Batch) bool) error
}

// ReplaceBus creates new batches for all open deliveries, and returns how many broadcasts are open. It calls sync before it removes
// the mark. powerLost says that the store is older than its last transaction by at most a few seconds.
func (r *Recovery) ReplaceBus(ctx context.Context, days []fanfare.Day, waiting Resumer, powerLost bool, sync func(context.Context) error) (broadcasts int, err error) {
	for _, day := range days {
		if err := r.holdDay(ctx, day, func(*backup.Uncertain) error { broadcasts++; return nil }); err != nil {
			return broadcasts, err
		}
	}
	// The database may be older than sent messages that contain its row ids.
	skipped := uint32(skippedRows)
	if powerLost {
		skipped = rowsInSeconds
	}
	if err := r.Registry.SkipRowIDs(ctx, skipped); err != nil {
		return broadcasts, err
	}
	if err := waiting.ReleaseHeld(ctx, func(*fanfare.Batch) bool { return false }); err != nil {
		return broadcasts, err
	}
	if err := sync(ctx); err != nil {
		return broadcasts, err
	}
	return broadcasts, durablefile.Remove(filepath.Join(r.Dir, lostBusFile))
}
