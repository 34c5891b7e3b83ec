package dkimkeys

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/dkim"
)

// A changed file is read again. A file that cannot be used leaves the key in force.
func TestKeyringFollowsKeyFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.pem")
	at := time.Now().Add(-time.Hour)
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Second) // as it is where some time passes
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	made := func() (*dkim.Private, []byte) {
		t.Helper()
		private, err := dkim.Generate(dkim.Ed25519)
		if err != nil {
			t.Fatal(err)
		}
		text, err := private.PEM()
		if err != nil {
			t.Fatal(err)
		}
		return private, text
	}
	channel := &catalog.Channel{Service: "news", Name: "mail", ChannelSettings: catalog.ChannelSettings{DKIM: []catalog.DKIMKey{{Domain: "example.org", Selector: "s", KeyFile: file}}}}
	first, firstText := made()
	second, secondText := made()
	write(firstText)
	never := func(*dkim.Key) bool { return false }
	var ring Keyring
	keys, broken := ring.Merge(channel, ReadAll(channel), never)
	ring.Set(keys, broken, Versions(channel))
	for _, step := range []struct {
		name   string
		change func()
		key    *dkim.Private
		anew   bool
		says   string // while it is so
	}{
		{"as before", func() {}, first, false, ""},
		{"the next", func() { write(secondText) }, second, true, ""},
		{"the next, still", func() {}, second, false, ""},
		{"half of one", func() { write(firstText[:60]) }, second, true, "neither a PEM private key"},
		{"half of one, still", func() {}, second, false, "neither a PEM private key"},
		{"none", func() { os.Remove(file) }, second, true, "cannot read key_file " + file + ": no such file"},
		{"none, still", func() {}, second, false, "cannot read key_file"},
		{"the first", func() { write(firstText) }, first, true, ""},
	} {
		step.change()
		anew, says := ring.Reload(channel, ReadAll, never), reasons(ring.broken)
		if anew != step.anew || (says != "") != (step.says != "") || !strings.Contains(says, step.says) {
			t.Errorf("%s: %v, %s", step.name, anew, says)
		}
		if got := ring.All(); len(got) != 1 || got[0].Record() != step.key.Record() {
			t.Errorf("%s: another key is in force", step.name)
		}
	}
}

// Mail waits only if a key should sign by now and none can.
func TestUnsignedOnlyIfNoOtherKeySigns(t *testing.T) {
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	private, err := dkim.Generate(dkim.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	usable := func(from time.Time, waits bool) *dkim.Key {
		return &dkim.Key{Domain: "example.org", Selector: "s", From: from, Waits: waits, Private: private}
	}
	broken := func(from time.Time, kept bool) Broken {
		return Broken{catalog.DKIMKey{Domain: "example.org", Selector: "b", From: from}, errors.New("it is gone"), kept}
	}
	later := now.Add(time.Hour)
	for name, test := range map[string]struct {
		keys   []*dkim.Key
		broken []Broken
		waits  bool
	}{
		"no keys":                           {nil, nil, false},
		"one of two":                        {[]*dkim.Key{usable(time.Time{}, false)}, []Broken{broken(time.Time{}, false)}, false},
		"the only one":                      {nil, []Broken{broken(time.Time{}, false)}, true},
		"the only one, as it was read":      {[]*dkim.Key{usable(time.Time{}, false)}, []Broken{broken(time.Time{}, true)}, false},
		"the only one, which signs later":   {nil, []Broken{broken(later, false)}, false},
		"and the other signs later":         {[]*dkim.Key{usable(later, false)}, []Broken{broken(time.Time{}, false)}, true},
		"and the other waits for the DNS":   {[]*dkim.Key{usable(time.Time{}, true)}, []Broken{broken(time.Time{}, false)}, true},
		"all sign later":                    {[]*dkim.Key{usable(later, false)}, nil, false},
		"the only one waits for its record": {[]*dkim.Key{usable(time.Time{}, true)}, nil, false},
	} {
		if err := Unsigned(test.keys, test.broken, now); (err != nil) != test.waits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
