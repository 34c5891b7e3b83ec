package serverkeys

import (
	"bytes"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func TestMissingKeyIsRefusedWhileSomethingDependsOnIt(t *testing.T) {
	for name, c := range map[string]struct {
		suppressed int
		linked     bool
		signing    int
		sealed     int
		want       string
	}{
		"nothing was sent":         {0, false, 0, 0, ""},
		"addresses are suppressed": {3, false, 0, 0, "suppression.key is missing"},
		"mails have links":         {0, true, 0, 0, "link.key is missing"},
		"channels sign":            {0, false, 2, 0, "webhook.key is missing"},
		"keys are sealed":          {0, false, 0, 2, "seal.key is missing"},
		"both":                     {3, true, 0, 0, "3 suppressed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for range 2 { // a refusal leaves no file that the next start would take for the old key
				keys, err := Read(dir)
				if err != nil {
					t.Fatal(err)
				}
				err = keys.Check(c.suppressed, c.linked, c.signing, c.sealed)
				if c.want == "" && err != nil || c.want != "" && (fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			}
		})
	}
}

func TestSavedKeysAreReadBack(t *testing.T) {
	dir := t.TempDir()
	first, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Save(); err != nil {
		t.Fatal(err)
	}
	again, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Check(3, true, 1, 1); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(first.Links.Bytes, again.Links.Bytes) || !bytes.Equal(first.Suppression.Bytes, again.Suppression.Bytes) {
		t.Error("the keys have changed")
	}
}
