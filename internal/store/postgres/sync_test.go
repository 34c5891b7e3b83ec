package postgres

import (
	"testing"

	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// The server writes what nobody waits for to the disk when it is idle, which is
// put off here.
func TestSyncedDataSurviveACrashInRelaxedMode(t *testing.T) {
	server := pgtest.Start(t, "wal_writer_delay=10s", "wal_writer_flush_after=0", "bgwriter_delay=10s")
	db := open(t, server.URL, Options{Durability: store.Relaxed})
	if err := db.Control().Write(t.Context(), func(s store.Session) error { return s.Run("change_seq_set", int64(4711)) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.Restart()
	var seq int64
	err := db.Control().Read(t.Context(), func(s store.Session) error {
		return s.Each("change_seq", func(r store.Row) error { seq = r.Int64(0); return nil })
	})
	if err != nil || seq != 4711 {
		t.Errorf("the number is %d (%v)", seq, err)
	}
}
