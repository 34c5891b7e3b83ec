package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/dkim"
	"fanfare.dev/fanfare/internal/registry"
)

// A file that changes is read anew, and one that cannot be used leaves what is in force.
func TestAKeyringFollowsTheFilesOfItsKeys(t *testing.T) {
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
	channel := &registry.Channel{Service: "news", Name: "mail", ChannelSettings: registry.ChannelSettings{DKIM: []registry.DKIMKey{{Domain: "example.org", Selector: "s", KeyFile: file}}}}
	first, firstText := made()
	second, secondText := made()
	write(firstText)
	keys, err := keysOf(channel)
	if err != nil {
		t.Fatal(err)
	}
	var ring keyring
	ring.take(keys, keyFiles(channel))
	for _, step := range []struct {
		name   string
		change func()
		key    *dkim.Private
		anew   bool
		says   string
	}{
		{"as before", func() {}, first, false, ""},
		{"the next", func() { write(secondText) }, second, true, ""},
		{"the next, still", func() {}, second, false, ""},
		{"half of one", func() { write(firstText[:60]) }, second, false, "no private key"},
		{"half of one, still", func() {}, second, false, ""},
		{"none", func() { os.Remove(file) }, second, false, "cannot read key_file"},
		{"none, still", func() {}, second, false, ""},
		{"the first", func() { write(firstText) }, first, true, ""},
	} {
		step.change()
		anew, err := ring.look(channel, keysOf)
		if anew != step.anew || (err != nil) != (step.says != "") || err != nil && !strings.Contains(err.Error(), step.says) {
			t.Errorf("%s: %v, %v", step.name, anew, err)
		}
		if got := ring.all(); len(got) != 1 || got[0].Record() != step.key.Record() {
			t.Errorf("%s: another key is in force", step.name)
		}
	}
}
