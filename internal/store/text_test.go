package store_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/store"
)

func TestATextHasNothingThatADatabaseRefuses(t *testing.T) {
	for given, want := range map[string]string{
		"":              "",
		"Grüße, 世界":     "Grüße, 世界",
		"a\x00b\x00":    "a\uFFFDb\uFFFD",
		"caf\xc3":       "caf\uFFFD",
		"\xff\xfe text": "\uFFFD text",
		"\uFFFD":        "\uFFFD",
	} {
		if got := store.Text(given); got != want {
			t.Errorf("%q is kept as %q, want %q", given, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\xed\xa0\x80")
	f.Fuzz(func(t *testing.T, s string) {
		kept := store.Text(s)
		if !utf8.ValidString(kept) || strings.Contains(kept, "\x00") || store.Text(kept) != kept {
			t.Errorf("%q is kept as %q", s, kept)
		}
		if utf8.ValidString(s) && !strings.Contains(s, "\x00") && kept != s {
			t.Errorf("%q was changed to %q", s, kept)
		}
	})
}
