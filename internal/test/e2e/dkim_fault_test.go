package e2e

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/dnstest"
)

// newKey makes a key by command.
func (s *server) newKey(folder, selector, kind string) madeKey {
	s.t.Helper()
	return into[madeKey](s.t, s.mustRun("", "dkim", "new", "example.org", "--type", kind, "--selector", selector, "--out", filepath.Join(folder, selector+".pem"), "--json"))
}

// sends has a mail sent and returns with which of the keys it is signed.
func (s *server) sends(r *relay, title string, keys ...madeKey) []string {
	s.t.Helper()
	before := len(r.of("ada@example.net"))
	s.http.completed(s.http.publish(`{"title":"` + title + `"}`))
	mails := r.of("ada@example.net")
	if len(mails) != before+1 {
		s.t.Fatalf("%d mails have come for %s", len(mails)-before, title)
	}
	return signers(s.t, mails[before], keys...)
}

func (s *server) checkup() checkup {
	s.t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	args := []string{"doctor", "--data-dir", s.dir, "--listen", u.Host, "--disk-floor", "0", "--public-url", "https://localhost", "--durability", "relaxed", "--json"}
	return into[checkup](s.t, run(s.t, append(s.where(), "FANFARE_SERVER=", "FANFARE_KEY="), "", args...).out)
}

// shows waits until status has all of the words, and returns it.
func (s *server) shows(words ...string) string {
	s.t.Helper()
	text := ""
	eventuallyWith(s.t, "the status has "+strings.Join(words, ", "), func() bool {
		text = strings.Join(strings.Fields(s.mustRun("", "status")), " ")
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	}, func() string { return text })
	return text
}

func spoil(t *testing.T, file string) (mend func()) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("no key\n"))
	return func() { write(text) }
}

// A file that breaks while the server runs is told of at once, and takes no other key
// with it, also not at the next start.
func TestABrokenKeyFileIsShownAtOnceAndTheChannelSignsWithItsOtherKeys(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	folder := t.TempDir()
	ed, rsa := s.newKey(folder, "small", "ed25519"), s.newKey(folder, "large", "rsa")
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: unlimited, dkim: ["+ed.entry()+", "+rsa.entry()+"]"))
	s.subscribe("ada@example.net")
	signed := func(title string, want ...string) {
		t.Helper()
		if got := s.sends(r, title, ed, rsa); !slices.Equal(got, want) {
			t.Errorf("%s is signed by %v, want %v", title, got, want)
		}
	}
	told := func(when string, k madeKey) {
		t.Helper()
		s.shows("news/email", k.File, k.Name, "fanfare dkim new")
		if found := s.checkup(); !found.has("DKIM "+k.Name, "wrong", k.File) {
			t.Errorf("%s the doctor does not tell of %s: %+v", when, k.File, found)
		}
		if metrics := s.http.must(200, "GET", "/metrics", "", ""); !strings.Contains(metrics, `fanfare_channel_unusable_secrets{channel="email",service="news"} 1`) {
			t.Errorf("%s it is not counted", when)
		}
	}
	signed("both", "large", "small")

	mend := spoil(t, ed.File)
	told("while the server runs", ed)
	signed("with what it had read", "large", "small")
	s.mustStop()
	s.start()
	told("after a start", ed)
	signed("with what it has", "large")

	mendOther := spoil(t, rsa.File)
	s.mustStop()
	s.start()
	s.shows("suspended", ed.File, rsa.File)
	held := s.http.publish(`{"title":"held"}`)
	s.shows("messages pending 1")
	mend()
	s.http.completed(held)
	mendOther()
	eventually(t, "nothing is wrong any more", func() bool {
		status := s.mustRun("", "status")
		return !strings.Contains(status, ed.File) && !strings.Contains(status, rsa.File)
	})
	signed("both again", "large", "small")
}

// Passwords and secrets that the next start could not read are told of as well.
func TestASecretThatCannotBeReadIsShownAtOnce(t *testing.T) {
	t.Parallel()
	r := newRelay(t, sink.Config{})
	s := serve(t)
	folder := t.TempDir()
	files := map[string]string{"password": filepath.Join(folder, "password"), "secret": filepath.Join(folder, "secret"), "receipts": filepath.Join(folder, "receipts")}
	for _, file := range files {
		if err := os.WriteFile(file, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.http.must(200, "POST", "/v1/apply", yaml, `{service: news, channels: {
		email: {driver: smtp, relay: "`+r.addr+`", from: a@example.org, tls: required, username: u, password_file: `+files["password"]+`, receipts: {form: standard, secret_file: `+files["receipts"]+`}},
		hook: {driver: webhook, secret_file: `+files["secret"]+`}}}`)
	if status := s.mustRun("", "status"); strings.Contains(status, folder) {
		t.Errorf("before anything is wrong the status says %s", status)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	s.shows(files["password"], files["secret"], files["receipts"])
	found := s.checkup()
	for what, file := range files {
		channel := "channel news/email"
		if what == "secret" {
			channel = "channel news/hook"
		}
		if !found.has(channel, "wrong", file) {
			t.Errorf("the doctor does not tell of %s: %+v", file, found)
		}
	}
}

// Receivers must find the record of a key before they find its signature.
func TestTheNextKeySignsOnceItsRecordIsSeenInTheDNS(t *testing.T) {
	t.Parallel()
	dns := &dnstest.Server{}
	s, r := newsroom(t, sink.Config{}, "", "--resolver", dns.Start(t))
	old := s.newKey(t.TempDir(), "old", "ed25519")
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: unlimited, dkim: ["+old.entry()+"]"))
	s.subscribe("ada@example.net")
	next := into[[]madeKey](t, s.mustRun("", "dkim", "rotate", "email", "--in", "0s", "--json"))[0]
	signed := func(title string, want madeKey) {
		t.Helper()
		if got := s.sends(r, title, old, next); !slices.Equal(got, []string{want.Selector}) {
			t.Errorf("%s is signed by %v, want %s", title, got, want.Selector)
		}
	}
	signed("before there is a record", old)
	s.shows("news/email", next.Name, "is not in the DNS", "add to the DNS")
	if found := s.checkup(); !found.has("DKIM "+next.Name, "warning", "waits") {
		t.Errorf("the doctor does not tell of it: %+v", found)
	}
	dns.Break(next.Name)
	s.shows(next.Name, "cannot be looked up")
	signed("while the DNS is away", old)
	dns.Add(next.Name, old.Record)
	s.shows(next.Name, "a different key")
	signed("while the record is another one", old)
	if again := s.run("", "dkim", "rotate", "email"); again.code != 1 || !strings.Contains(again.err, next.Name) || !strings.Contains(again.err, "already waiting") {
		t.Errorf("another rotation ended with %d: %s%s", again.code, again.out, again.err)
	}

	dns.Add(next.Name, next.Record)
	eventually(t, "the record is seen", func() bool { return !strings.Contains(s.mustRun("", "status"), next.Name) })
	signed("once the record is there", next)
	dns.Break(next.Name)
	s.mustStop()
	s.start()
	signed("after a start without the DNS", next)

	forced := into[[]madeKey](t, s.mustRun("", "dkim", "rotate", "email", "--in", "0s", "--force", "--json"))[0]
	if got := s.sends(r, "by force", old, next, forced); !slices.Equal(got, []string{forced.Selector}) {
		t.Errorf("by force it is signed by %v", got)
	}
}
