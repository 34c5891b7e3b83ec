package sqlite

import (
	"bytes"
	"context"
	"errors"
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
	const of = fanfare.Day(5)
	p := mustDay(t, openDB(t, dir), of)
	rows := 0
	write := func(n int) {
		t.Helper()
		for range n {
			if err := p.Write(t.Context(), manifests(rows, 1, 800)); err != nil {
				t.Fatal(err)
			}
			rows++
		}
	}
	write(100)
	path := (&DB{dir: dir}).path(of)
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

	other := &DB{dir: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(other.path(of)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other.path(of), copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := openReader(other.path(of), 100)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := sqlitex.ResultText(conn.Prep("PRAGMA integrity_check")); err != nil || text != "ok" {
		t.Errorf("the copy is %q, %v", text, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	restored := mustDay(t, openDB(t, other.dir), of)
	if got := idsIn(t, restored); len(got) != 100 {
		t.Errorf("the copy has %d rows, want the first 100", len(got))
	}
	if err := restored.Write(t.Context(), manifests(rows, 1, 1)); err != nil {
		t.Error(err)
	}
}

func TestASnapshotEndsWithItsContextAndWithItsWriter(t *testing.T) {
	dir := t.TempDir()
	openDB(t, dir)
	s, err := OpenSnapshot(filepath.Join(dir, "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
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
	const of = fanfare.Day(5)
	p := mustDay(b, openDB(b, dir), of)
	if err := p.Write(b.Context(), manifests(1, 500, 96_000)); err != nil {
		b.Fatal(err)
	}
	snapshot, err := OpenSnapshot((&DB{dir: dir}).path(of))
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
