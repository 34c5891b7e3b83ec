package bus

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// replaceDir replaces a directory by a copy of another one.
func replaceDir(t *testing.T, to, from string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
		t.Fatal(err)
	}
}

func synced(context.Context) error { return nil }

func TestALossOfPowerGivesNoSequenceTwiceAndDeliversUnsyncedResultsAgain(t *testing.T) {
	dir, saved := t.TempDir(), t.TempDir()
	b := open(t, Options{Dir: dir})
	q, err := b.Events(t.Context(), fanfare.Normal)
	if err != nil {
		t.Fatal(err)
	}
	appendGroups(t, b, fanfare.Normal, 3)
	publish(t, b, "a batch of an earlier time")
	done(t, b, take(t, q, "normal 0"))
	failure := errors.New("the disk is full")
	if err := b.SyncPoint(t.Context(), func(context.Context) error { return failure }); !errors.Is(err, failure) {
		t.Fatalf("the store was not synced, and the result is %v", err)
	}
	if err := b.SyncPoint(t.Context(), synced); err != nil {
		t.Fatal(err)
	}
	done(t, b, take(t, q, "normal 1")) // the store may not have its result
	replaceDir(t, saved, dir)
	appendGroups(t, b, fanfare.Normal, 2) // which the disk does not have
	last, err := b.NextEvent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	replaceDir(t, dir, saved)
	if lost, err := PowerLost(dir); lost || err != nil {
		t.Errorf("in the same run of the system, the power was lost: %t, %v", lost, err)
	}
	path := filepath.Join(dir, syncPointFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), `"boot":"`, `"boot":"earlier `, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if lost, err := PowerLost(dir); !lost || err != nil {
		t.Fatalf("in another run of the system, the power was lost: %t, %v", lost, err)
	}

	b = open(t, Options{Dir: dir, PowerLost: true})
	if q, err = b.Events(t.Context(), fanfare.Normal); err != nil {
		t.Fatal(err)
	}
	if next, err := b.NextEvent(t.Context()); err != nil || next < last {
		t.Errorf("the next sequence is %d, %v; those below %d may be in use", next, err, last)
	}
	done(t, b, take(t, q, "normal 1"))
	done(t, b, take(t, q, "normal 2"))
	settled(t, b, Backlog{})
	replayed := 0
	err = b.ReplayEvents(t.Context(), time.Unix(0, 0), func(uint64, time.Time, []byte) error { replayed++; return nil })
	if err != nil || replayed != 3 {
		t.Errorf("%d groups are replayed, %v", replayed, err)
	}
	if group, _, err := b.EventGroup(t.Context(), last-1); group != nil || err != nil {
		t.Errorf("a sequence that was skipped has the group %q, %v", group, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if lost, err := PowerLost(dir); lost || err != nil {
		t.Errorf("after a clean end, the power was lost: %t, %v", lost, err)
	}
}

func TestSequencesAreReservedBeforeTheyAreUsed(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Options{Dir: dir})
	appendGroups(t, b, fanfare.Normal, reserveGroups+10)
	next, err := b.NextEvent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	point, err := readSyncPoint(dir)
	if err != nil || point.Reserved < next-1 {
		t.Errorf("%+v is reserved, %v; the last sequence is %d", point, err, next-1)
	}
}

func TestADamagedSyncPointSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, syncPointFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := PowerLost(dir); fanfare.CodeOf(err) != fanfare.Invalid || !strings.Contains(err.Error(), dir) {
		t.Errorf("the error is %v", err)
	}
}
