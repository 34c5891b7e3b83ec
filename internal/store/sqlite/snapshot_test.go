package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
)

// The copy is of the moment in which it was opened, whatever is written before
// and while it is read, in the file or in its log.
func TestASnapshotIsTheFileAtOneMoment(t *testing.T) {
	dir := t.TempDir()
	s := openRecord(t, dir)
	day := fanfare.DayOf(noon)
	events := uint64(0)
	write := func(n int) {
		for range n {
			events++
			freeze(t, s, frozenEvent(events, noon, 50, 50))
		}
	}
	write(100)
	path := filepath.Join(dir, "deliveries-"+day.String()+".db")
	snapshot, err := OpenSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	write(100)
	var copied bytes.Buffer
	if err := snapshot.Copy(t.Context(), writerFunc(func(b []byte) (int, error) {
		if copied.Len() == 0 {
			write(1)
		}
		return copied.Write(b)
	})); err != nil {
		t.Fatal(err)
	}
	if int64(copied.Len()) != snapshot.Size() {
		t.Errorf("%d bytes were copied, and %d announced", copied.Len(), snapshot.Size())
	}
	if err := snapshot.Close(); err != nil {
		t.Fatal(err)
	}
	write(1) // and the log can be emptied again

	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, filepath.Base(path)), copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := openReader(filepath.Join(other, filepath.Base(path)), 100)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := sqlitex.ResultText(conn.Prep("PRAGMA integrity_check")); err != nil || text != "ok" {
		t.Errorf("the copy is %q, %v", text, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	restored := openRecord(t, other)
	list, err := restored.Broadcasts(t.Context(), day, "", 1<<60, 1000)
	if err != nil || len(list) != 100 {
		t.Errorf("the copy has %d events, %v, want the first 100 of %d", len(list), err, events)
	}
	freeze(t, restored, frozenEvent(1000, noon, 1))
}

func TestASnapshotEndsWithItsContextAndWithItsWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.db")
	c, err := OpenControl(t.Context(), path, Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := OpenSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("no room")
	if err := s.Copy(t.Context(), writerFunc(func([]byte) (int, error) { return 0, full })); !errors.Is(err, full) {
		t.Errorf("with a writer that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Copy(ctx, writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := s.Copy(t.Context(), writerFunc(func(b []byte) (int, error) { return len(b), nil })); err != nil {
		t.Errorf("once more: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := OpenSnapshot(filepath.Join(t.TempDir(), "none.db")); err == nil {
		t.Error("a file that is not there is opened")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func BenchmarkSnapshot(b *testing.B) {
	dir := b.TempDir()
	s := openRecord(b, dir)
	for i := range uint64(500) {
		f := frozenEvent(i+1, noon, 20_000)
		f.Posted.Event.ID = fmt.Sprint(i)
		freeze(b, s, f)
	}
	snapshot, err := OpenSnapshot(filepath.Join(dir, "deliveries-"+fanfare.DayOf(noon).String()+".db"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(snapshot.Size())
	for b.Loop() {
		if err := snapshot.Copy(b.Context(), writerFunc(func(p []byte) (int, error) { return len(p), nil })); err != nil {
			b.Fatal(err)
		}
	}
	if err := snapshot.Close(); err != nil {
		b.Fatal(err)
	}
}
