package file

import (
	"os"
	"sync/atomic"
	"time"
)

// A syncer makes files durable: each by itself, or all at once by having their file
// system write what it holds. The second has the disk wait once for all of them, but
// writes what others have left there too, of which there may be much: so it is used
// as long as it takes less time than the first did. Where it took more, it is tried
// again after that time, and after twice as long each time in a row: what others left
// is written by then, or they leave more all the time.
type syncer struct {
	syncfs      func(*os.File) error // syncs the file system of a file; nil: it cannot be relied on
	perFile     atomic.Int64         // nanoseconds that syncing a file took the last time; 0: that is not known
	singlyUntil atomic.Int64         // until when each is synced by itself, in nanoseconds since 1970
	slowInRow   atomic.Int32         // times in a row that all at once took longer
}

// maxSlowInRow bounds what is tried in vain to a hundredth of the time.
const maxSlowInRow = 7

// newSyncer returns one for files in a folder that is there.
func newSyncer(folder string) *syncer {
	if canSyncFileSystem(folder) {
		return &syncer{syncfs: syncFileSystem}
	}
	return &syncer{}
}

// sync makes files durable, and says for each what came of it.
func (s *syncer) sync(files []*os.File) []error {
	began := time.Now()
	single := time.Duration(s.perFile.Load())
	if s.syncfs == nil || len(files) == 1 || single == 0 || began.UnixNano() < s.singlyUntil.Load() {
		failed := syncEach(files)
		s.perFile.Store(max(1, int64(time.Since(began))/int64(len(files))))
		return failed
	}
	err := s.syncfs(files[0])
	if took := time.Since(began); err != nil || took > time.Duration(len(files))*single {
		s.singlyUntil.Store(time.Now().Add(took << min(s.slowInRow.Add(1)-1, maxSlowInRow)).UnixNano())
	} else {
		s.slowInRow.Store(0)
	}
	if err != nil { // that may be about other files: each of these knows of itself
		return syncEach(files)
	}
	return make([]error, len(files))
}

func syncEach(files []*os.File) []error {
	failed := make([]error, len(files))
	for i, f := range files {
		failed[i] = f.Sync()
	}
	return failed
}
