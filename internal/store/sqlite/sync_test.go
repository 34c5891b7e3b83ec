package sqlite

import (
	"testing"

	"fanfare.dev/fanfare/internal/store"
)

func TestCommittedDataCanBeSyncedAtAnyTime(t *testing.T) {
	db, err := Open(t.Context(), t.TempDir(), store.Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []int64{1, 2} {
		if err := db.Sync(t.Context()); err != nil {
			t.Error(err)
		}
		if err := db.Control().Write(t.Context(), func(s store.Session) error { return s.Run("change_seq_set", value) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
