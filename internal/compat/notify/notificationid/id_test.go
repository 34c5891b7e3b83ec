package notificationid

import (
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

func TestIDNamesItsMessage(t *testing.T) {
	c := New([]byte("a key"))
	rapid.Check(t, func(t *rapid.T) {
		ref := fanfare.EventRef{Day: fanfare.Day(rapid.Uint16().Draw(t, "day")), Seq: fanfare.EventSeq(rapid.Uint64().Draw(t, "seq"))}
		id := c.Of("passports", ref)
		u, err := uuid.Parse(id)
		if err != nil || u.Version() != 8 || u.Variant() != uuid.RFC4122 {
			t.Fatalf("%s is not a UUID of version 8: %v", id, err)
		}
		if again, ok := c.Parse("passports", id); !ok || again != ref {
			t.Fatalf("%s is read as %v, %v; want %v", id, again, ok, ref)
		}
		if _, ok := c.Parse("taxes", id); ok {
			t.Fatal("another service can read the id")
		}
		if _, ok := New([]byte("another key")).Parse("passports", id); ok {
			t.Fatal("another server can read the id")
		}
	})
}

func TestOtherTextIsNoID(t *testing.T) {
	c := New([]byte("a key"))
	for _, id := range []string{"", "x", "00000000-0000-0000-0000-000000000000", uuid.NewString(), "ffffffff-ffff-8fff-bfff-ffffffffffff"} {
		if ref, ok := c.Parse("passports", id); ok {
			t.Errorf("%q is read as %v", id, ref)
		}
	}
}
