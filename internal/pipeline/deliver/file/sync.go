package file

import (
	"os"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/failpoint"
)

// A syncer makes files durable: each file with fsync, or all of them with one syncfs of
// their file system. syncfs waits for the disk once, but it also writes the data of other
// processes in the cache. It is therefore used only while it takes less time than the fsyncs
// did. After a slower syncfs, the next one is tried when as much time has passed as it
// took, and twice as much after each further one in a row.
type syncer struct {
	syncfs      func(*os.File) error // nil: syncfs is not reliable here
	perFile     atomic.Int64         // nanoseconds that the last fsync took; 0: unknown
	singlyUntil atomic.Int64         // no syncfs until then, in nanoseconds since 1970
	slowInRow   atomic.Int32         // slower syncfs calls in a row
}

// maxSlowInRow limits the time spent on useless attempts to one percent.
const maxSlowInRow = 7

// newSyncer returns a syncer for files in an existing folder.
func newSyncer(folder string) *syncer {
	if canSyncFileSystem(folder) {
		return &syncer{syncfs: syncFileSystem}
	}
	return &syncer{}
}

// sync makes files durable, and returns an error for each file.
func (s *syncer) sync(files []*os.File) []error {
	if failpoint.Fault("files-without-sync") {
		return make([]error, len(files))
	}
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
	if err != nil { // the error may concern other files; fsync reports those of each file
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
