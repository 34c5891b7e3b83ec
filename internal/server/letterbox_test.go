package server

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"fanfare.dev/fanfare/internal/clock"
)

// Anybody may write to postmaster: what is kept must have an end wherever the data
// directory lies, also where its name would be a pattern.
func TestTheLetterboxKeepsTheNewestOnly(t *testing.T) {
	for _, name := range []string{"data", "data [1]", "da*ta"} {
		box := &letterbox{dir: filepath.Join(t.TempDir(), name), clock: clock.System{}}
		if err := os.MkdirAll(box.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range maxLetters + 5 {
			if err := os.WriteFile(filepath.Join(box.dir, fmt.Sprintf("20200101T000000-%03d.eml", i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := box.keep([]byte("Subject: x\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		all, err := box.letters()
		if err != nil || len(all) != maxLetters || all[0] != "20200101T000000-006.eml" {
			t.Errorf("%s: %d are kept (%v)", name, len(all), err)
		}
	}
}
