package feedback

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fanfare.dev/fanfare/internal/clock"
)

// The names of the directories contain characters that have a meaning in patterns.
func TestMailStoreKeepsOnlyTheNewestMails(t *testing.T) {
	for _, name := range []string{"data", "data [1]", "da*ta"} {
		store := &MailStore{Dir: filepath.Join(t.TempDir(), name), Clock: clock.System{}}
		if err := os.MkdirAll(store.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range maxMails + 5 {
			if err := os.WriteFile(filepath.Join(store.Dir, fmt.Sprintf("20200101T000000-%03d.eml", i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Keep([]byte("Subject: x\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		all, err := store.list()
		if err != nil || len(all) != maxMails || all[0] != "20200101T000000-006.eml" {
			t.Errorf("%s: %d mails are kept (%v)", name, len(all), err)
		}
	}
}
