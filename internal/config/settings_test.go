package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestSettingsSayWhereTheyComeFromAndKeepSecrets(t *testing.T) {
	file := "data_dir: /srv/fanfare\n# a comment\nallow_recipients: [ada@example.org, '@example.net']\ndb_password_file: /etc/password\n"
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(fs)
	if err := fs.Parse([]string{"--config", "fanfare.yaml", "--retention-days", "7"}); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"FANFARE_DB": "postgres://fanfare@db.example.org/fanfare", "FANFARE_NATS": "nats://s3cret-token@bus.example.org", "FANFARE_LISTEN": "127.0.0.1:9000"}
	lookup := func(name string) (string, bool) { v, ok := environment[name]; return v, ok }
	read := func(name string) ([]byte, error) {
		switch name {
		case "fanfare.yaml":
			return []byte(file), nil
		case "/etc/password":
			return []byte("s3cret-password\n"), nil
		}
		return nil, os.ErrNotExist
	}
	c, err := load(fs, lookup, read)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range c.Settings() {
		got[s.Key] = fmt.Sprint(s.Value, " | ", s.From, " ", s.Where, " | ", s.IsSecret, " ", s.IsSet)
		if s.Doc == "" || s.Kind == "" {
			t.Errorf("%s is not described", s.Key)
		}
		if strings.Contains(fmt.Sprint(s), "s3cret") {
			t.Errorf("a secret is in %+v", s)
		}
	}
	for key, want := range map[string]string{
		"data_dir":         "/srv/fanfare | file fanfare.yaml:1 | false true",
		"allow_recipients": "ada@example.org, @example.net | file fanfare.yaml:3 | false true",
		"retention_days":   "7 | flag --retention-days | false true",
		"listen":           "127.0.0.1:9000 | environment FANFARE_LISTEN | false true",
		"db":               " | environment FANFARE_DB | true true",
		"nats":             " | environment FANFARE_NATS | true true",
		"audit_days":       "365 | default  | false true",
		"public_url":       " | default  | false false",
		"disk_floor":       "5% or 1GB | default  | false true",
		"drain_timeout":    "30s | default  | false true",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if len(got) != len(fields()) {
		t.Errorf("%d settings of %d", len(got), len(fields()))
	}
	for _, s := range (&Config{DataDir: "x"}).Settings() {
		if s.From != FromProgram {
			t.Errorf("a value of the program comes from %s", s.From)
		}
	}
}
