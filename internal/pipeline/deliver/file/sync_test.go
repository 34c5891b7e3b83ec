package file

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func open(t *testing.T, n int) []*os.File {
	t.Helper()
	files := make([]*os.File, n)
	for i := range files {
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		files[i] = f
	}
	return files
}

func TestSyncfsIsUsedWhileItIsFaster(t *testing.T) {
	wholes := 0
	s := &syncer{syncfs: func(*os.File) error { wholes++; return nil }}
	sync := func(n, want int, why string) {
		t.Helper()
		for _, err := range s.sync(open(t, n)) {
			if err != nil {
				t.Error(err)
			}
		}
		if wholes != want {
			t.Fatalf("%d times the whole file system, want %d: %s", wholes, want, why)
		}
	}
	sync(3, 0, "it is not known what a file costs")
	if s.perFile.Load() == 0 {
		t.Fatal("the time of an fsync is not known")
	}
	s.perFile.Store(int64(time.Hour))
	sync(3, 1, "that is cheaper")
	sync(1, 1, "of one file only that is synced")
	s.perFile.Store(1)
	sync(3, 2, "it was cheaper until now")
	s.perFile.Store(int64(time.Hour))
	s.singlyUntil.Store(math.MaxInt64) // otherwise a slow machine is past it
	sync(3, 2, "it was dearer a moment ago")
	(&syncer{}).sync(open(t, 3)) // without syncfs, nothing is called
}

func TestSyncErrorNamesTheFailedFile(t *testing.T) {
	s := &syncer{syncfs: func(*os.File) error { return errors.New("somebody's disk is broken") }}
	s.perFile.Store(int64(time.Hour))
	files := open(t, 3)
	if err := files[1].Close(); err != nil {
		t.Fatal(err)
	}
	failed := s.sync(files)
	if failed[0] != nil || failed[1] == nil || failed[2] != nil {
		t.Errorf("failures %v, want that of the second", failed)
	}
	if s.singlyUntil.Load() == 0 {
		t.Error("a failed syncfs is tried again at once")
	}
}
