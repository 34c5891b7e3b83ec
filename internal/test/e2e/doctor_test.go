package e2e

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

type checkup struct {
	Findings []struct{ Check, Level, What, Mend string }
	Wrong    int
	Warnings int
}

// has reports whether there is a finding of this level that says what.
func (c *checkup) has(check, level, what string) bool {
	return slices.ContainsFunc(c.Findings, func(f struct{ Check, Level, What, Mend string }) bool {
		return f.Check == check && f.Level == level && strings.Contains(f.What, what) && (f.Level != "ok" || f.Mend == "")
	})
}

// The doctor looks at a server beside it, and at each of its relays.
func TestDoctorFindsWhatIsWrongAndChangesNothing(t *testing.T) {
	t.Parallel()
	certificate, _, err := sink.SelfSigned("localhost")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, sink.Config{TLS: certificate})
	s := prepare(t)
	s.env = []string{"FANFARE_E2E_SECRET=x"}
	s.start()
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, ""))
	const closed = "127.0.0.1:1" // nobody is given that port
	s.http.must(200, "POST", "/v1/apply", yaml, `{service: news, channels: {down: {driver: smtp, relay: "`+closed+`", from: a@example.org},
		login: {driver: smtp, relay: "`+r.addr+`", from: a@example.org, username: u, password_env: FANFARE_E2E_SECRET},
		drop: {driver: file, path: `+t.TempDir()+`, from: a@example.org}}}`)
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"doctor", "--data-dir", s.dir, "--listen", u.Host, "--disk-floor", "0", "--public-url", "https://localhost", "--durability", "relaxed"}
	// Out of the environment of the tests: it looks where its own flags say.
	ran := run(t, append(s.where(), "FANFARE_SERVER=", "FANFARE_KEY="), "", append(args, "--json")...)
	found := into[checkup](t, ran.out)
	if ran.code != 1 || found.Wrong != 1 {
		t.Errorf("ended with %d: %s%s", ran.code, ran.out, ran.err)
	}
	for _, want := range []struct{ check, level, what string }{
		{"configuration", "ok", "are valid"}, {"time zones", "ok", ""}, {"keys", "ok", ""}, {"sync", "ok", "a sync takes"},
		{"listen", "ok", "a server runs at " + u.Host}, {"version", "ok", ""}, {"server", "ok", "accepts work"}, {"public_url", "ok", "localhost"},
		{"channel news/email", "ok", "TLS 1.3"}, {"channel news/email", "warning", "is not trusted"},
		{"channel news/down", "wrong", "connection refused"}, {"channel news/drop", "ok", "is writable"},
		{"channel news/login", "warning", "FANFARE_E2E_SECRET"}, {"open files", "ok", ""},
	} {
		if !found.has(want.check, want.level, want.what) {
			t.Errorf("%s %s %q is not in %s", want.level, want.check, want.what, ran.out)
		}
	}
	if files := found.has("files", "ok", "database files can be read"); files != (s.database == "") {
		t.Errorf("database files can be read: %t, in %s", files, ran.out)
	}
	if r.total() != 0 {
		t.Errorf("the doctor sent %d mails", r.total())
	}
	if text := run(t, s.where(), "", args...); text.code != 1 || !strings.Contains(text.out, "✗ channel news/down") || !strings.Contains(text.out, "→ start the mail server") || !strings.Contains(text.err, "1 problem") {
		t.Errorf("printed as %s%s", text.out, text.err)
	}

	// Where the store cannot be read, the server says what there is.
	other := filepath.Join(t.TempDir(), "other")
	if err := os.MkdirAll(filepath.Join(other, "control.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	asked := run(t, []string{"FANFARE_KEY=" + s.key}, "", "doctor", "--data-dir", other, "--listen", u.Host, "--disk-floor", "0", "--json")
	if found := into[checkup](t, asked.out); !found.has("channel news/email", "ok", "TLS 1.3") || !found.has("channel news/down", "wrong", "refused") || !found.has("listen", "warning", "a data directory other than") {
		t.Errorf("by the server: %s%s", asked.out, asked.err)
	}

	s.http.must(200, "POST", "/v1/apply", yaml, `{service: news, channels: {down: {delete: true}}}`)
	s.mustStop()
	before := files(t, s.dir)
	free := run(t, s.where(), "", append(args, "--json")...)
	found = into[checkup](t, free.out)
	if free.code != 0 || !found.has("listen", "ok", "is free") || !found.has("channel news/email", "ok", "") {
		t.Errorf("without a server it ended with %d: %s", free.code, free.out)
	}
	if strict := run(t, s.where(), "", append(args, "--strict")...); strict.code != 1 {
		t.Errorf("strictly it ended with %d: %s", strict.code, strict.out)
	}
	if after := files(t, s.dir); !slices.Equal(before, after) {
		t.Errorf("there was %v, and is %v", before, after)
	}
	if wrong := run(t, nil, "", "doctor", "--lease", "1s", "--json"); wrong.code != 1 || !strings.Contains(wrong.out, "--lease") {
		t.Errorf("with a wrong field it ended with %d: %s", wrong.code, wrong.out)
	}
}

// files lists what is in a folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range list {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().IsRegular() {
			list[i] += info.ModTime().String()
		}
	}
	return list
}
