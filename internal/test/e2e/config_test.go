package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A configuration that cannot be used is refused at the start, with the place
// where it was written and what to write instead.
func TestUnusableConfigurationIsRefusedAtItsPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "fanfare.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	issuers := filepath.Join(dir, "oidc.yaml")
	if err := os.WriteFile(issuers, []byte("issuers:\n- {id: staff, name: Staff, issuer: \"http://login.example.org\", client_id: fanfare}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, file string
		env, args  []string
		want       []string
	}{
		{"unknown key", "durability: relaxed\nlog_lvel: info\n", nil, nil, []string{"log_lvel", "line 2, column 1", "fanfare.yaml", "log_level"}},
		{"two unknown keys", "a: 1\nb: 2\n", nil, nil, []string{"line 1", "line 2"}},
		{"key that stands twice", "retention_days: 1\nretention_days: 2\n", nil, nil, []string{"line 2", "already", "retention_days"}},
		{"file that is not YAML", "durability: [\n", nil, nil, []string{"fanfare.yaml", "line"}},
		{"wrong value in the file", "durability: relaxed\nlease: soon\n", nil, nil, []string{"line 2", "lease", "duration"}},
		{"value out of range", "retention_days: 0\n", nil, nil, []string{"line 1", "retention_days"}},
		{"wrong value in the environment", "", []string{"FANFARE_DURABILITY=perhaps"}, nil, []string{"FANFARE_DURABILITY", "fsync", "relaxed"}},
		{"wrong value of a flag", "", nil, []string{"--drain-timeout", "-1s"}, []string{"--drain-timeout"}},
		{"unknown flag", "", nil, []string{"--log-lvel", "info"}, []string{"--log-lvel"}},
		{"password in the file", "nats: nats://user:secret@nats.example.org:4222\n", nil, nil, []string{"line 1", "FANFARE_NATS"}},
		{"missing file of issuers", "", nil, []string{"--oidc", filepath.Join(dir, "none.yaml")}, []string{"none.yaml", "oidc"}},
		{"wrong file of issuers", "", nil, []string{"--oidc", issuers}, []string{"oidc.yaml", "line 2", "/issuers/0/issuer", "https://"}},
		{"missing file", "", nil, []string{"--config", filepath.Join(dir, "none.yaml")}, []string{"none.yaml"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := []string{"serve", "--data-dir", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"}
			if test.file != "" {
				args = append(args, "--config", file(test.file))
			}
			ran := run(t, test.env, "", append(args, test.args...)...)
			if ran.code != 1 || ran.out != "" {
				t.Errorf("ended with %d: %s", ran.code, ran.out)
			}
			for _, want := range test.want {
				if !strings.Contains(ran.err, want) {
					t.Errorf("%q is not in %s", want, ran.err)
				}
			}
			if strings.Contains(ran.err, "secret") {
				t.Errorf("the password is in %s", ran.err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("a server that did not start left something: %v", err)
	}
}

// Two servers would write over each other.
func TestSecondServerOnADataDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ran := run(t, s.where(), "", "serve", "--data-dir", s.dir, "--listen", "127.0.0.1:0")
	if ran.code != 1 || !strings.Contains(ran.err, s.dir) || !strings.Contains(ran.err, "data_dir") {
		t.Errorf("ended with %d: %s", ran.code, ran.err)
	}
	s.http.must(200, "GET", "/readyz", "", "")
	s.mustStop()
	s.start()
	s.http.must(200, "GET", "/readyz", "", "")
}
