package database

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/datadir"
)

func TestPairingRefusesADirectoryOfAnotherDatabase(t *testing.T) {
	current := Pairing{Identity: "1a2b", Database: "fanfare@db.example.org:5432/fanfare"}
	const known = "ffk_known"
	for name, test := range map[string]struct {
		files map[string]string
		want  string // of the refusal, "" for none
	}{
		"a new directory":                       {nil, ""},
		"the keys of a lost directory":          {map[string]string{"link.key": "x", "suppression.key": "x"}, ""},
		"files that were moved into it":         {map[string]string{"bus/x": "", "admin.key": known + "\n", "control.db": ""}, ""},
		"the directory it had":                  {map[string]string{"bus/x": "", "admin.key": "gone", PairingFile: `{"identity":"1a2b","database":"elsewhere"}`}, ""},
		"another database's":                    {map[string]string{"bus/x": "", "admin.key": known, PairingFile: `{"identity":"ffff","database":"fanfare@other:5432/x"}`}, "fanfare@other:5432/x"},
		"files that were not moved into it":     {map[string]string{"bus/x": "", "admin.key": "ffk_other", "control.db": ""}, "the key in the admin.key of the directory is not in the database"},
		"files without an admin key":            {map[string]string{"control.db": "", "link.key": "x"}, "the key in the admin.key of the directory is not in the database"},
		"a bus and nothing else":                {map[string]string{"bus/x": ""}, "the key in the admin.key of the directory is not in the database"},
		"an unknown admin key":                  {map[string]string{"admin.key": "ffk_other"}, "the key in the admin.key of the directory is not in the database"},
		"a damaged pairing file":                {map[string]string{PairingFile: "{"}, PairingFile},
		"the directory it had, with a bus lost": {map[string]string{"admin.key": known, PairingFile: `{"identity":"1a2b","database":"elsewhere"}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range test.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := checkPairing(dir, current, func(secret string) bool { return secret == known })
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				return
			}
			if err := checkPairing(dir, current, func(string) bool { return false }); err != nil {
				t.Errorf("the next start: %v", err)
			}
			if err := CheckUnpaired(dir); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), "db is empty") {
				t.Errorf("a start without the database: %v", err)
			}
		})
	}
	if err := CheckUnpaired(t.TempDir()); err != nil {
		t.Errorf("files in a new directory: %v", err)
	}
}

func TestPairingFollowsAMove(t *testing.T) {
	old, other, next := Pairing{"1a2b", "old"}, Pairing{"ffff", "other"}, Pairing{"3c4d", "new"}
	dir := t.TempDir()
	nobody := func(string) bool { return false }
	if err := ChangePairing(dir, old, next); err != nil || datadir.Has(dir, PairingFile) {
		t.Errorf("a directory without a pairing: %v", err)
	}
	if err := checkPairing(dir, old, nobody); err != nil {
		t.Fatal(err)
	}
	if err := ChangePairing(dir, other, next); err != nil {
		t.Error(err)
	}
	if err := checkPairing(dir, old, nobody); err != nil {
		t.Errorf("after a move between others: %v", err)
	}
	if err := ChangePairing(dir, old, next); err != nil {
		t.Error(err)
	}
	if err := checkPairing(dir, next, nobody); err != nil {
		t.Errorf("the new one: %v", err)
	}
	if err := checkPairing(dir, old, nobody); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("the old one: %v", err)
	}
}
