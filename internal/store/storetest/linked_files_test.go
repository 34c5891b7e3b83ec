package storetest_test

import (
	"bytes"
	"testing"

	"fanfare.dev/fanfare/internal/store/control"
)

func TestLinkedFilesAreKeptUntilTheyExpireOrAreErased(t *testing.T) {
	onEachControl(t, func(t *testing.T, c *control.Store) {
		ids := [][]byte{{1}, {2}, {3}, {4}}
		for i, f := range []control.LinkedFile{
			{Service: "a", Recipient: []byte("ada"), ExpiresAt: 10},
			{Service: "a", Recipient: []byte("ada"), ExpiresAt: 20},
			{Service: "a", Recipient: []byte("bob"), ExpiresAt: 20},
			{Service: "b", Recipient: []byte("ada"), ExpiresAt: 20},
		} {
			f.ID, f.Content = ids[i], bytes.Repeat(ids[i], 1<<20)
			if err := c.AddLinkedFile(t.Context(), &f); err != nil {
				t.Fatal(err)
			}
		}
		stored := func(want ...bool) {
			t.Helper()
			for i, id := range ids {
				f, err := c.LinkedFile(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if (f != nil) != want[i] {
					t.Errorf("file %d is stored: %v, want %v", i+1, f != nil, want[i])
				}
				if f != nil && (!bytes.Equal(f.Content, bytes.Repeat(id, 1<<20)) || f.ExpiresAt != 20 && f.ExpiresAt != 10) {
					t.Errorf("file %d has changed", i+1)
				}
			}
		}
		stored(true, true, true, true)
		if err := c.ExpireLinkedFiles(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		stored(false, true, true, true)
		if err := c.EraseLinkedFiles(t.Context(), "a", [][]byte{[]byte("ada"), []byte("eve")}); err != nil {
			t.Fatal(err)
		}
		stored(false, false, true, true)
	})
}
