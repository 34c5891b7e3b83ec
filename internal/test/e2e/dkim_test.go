package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"fanfare.dev/fanfare/internal/sink"
)

// A made key, as the command tells of it.
type madeKey struct{ Domain, Selector, Type, File, Name, Record, Zone string }

// entry is the key as a channel names it.
func (k madeKey) entry() string {
	return "{domain: " + k.Domain + ", selector: " + k.Selector + ", key_file: " + k.File + "}"
}

// signers are the selectors with which a mail is signed, by the records of keys.
func signers(t *testing.T, mail string, keys ...madeKey) (selectors []string) {
	t.Helper()
	var mu sync.Mutex // signatures are verified side by side
	all, err := dkim.VerifyWithOptions(strings.NewReader(mail), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
		i := slices.IndexFunc(keys, func(k madeKey) bool { return k.Name == name })
		if i < 0 {
			return nil, errors.New("no such name")
		}
		mu.Lock()
		defer mu.Unlock()
		selectors = append(selectors, keys[i].Selector)
		return []string{keys[i].Record}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Err != nil {
			t.Errorf("%v: %s", v.Err, mail)
		}
	}
	slices.Sort(selectors)
	return selectors
}

// A key is made, named by a channel, and followed by the next one, all by commands;
// and it is nowhere but in its file.
func TestKeysAreMadeAndRotatedByCommand(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "", "--log-level", "debug")
	folder := t.TempDir()
	var keys []madeKey
	for _, kind := range []string{"ed25519", "rsa"} {
		keys = append(keys, into[madeKey](t, s.mustRun("", "dkim", "new", "Example.org", "--type", kind, "--selector", "first-"+kind, "--out", filepath.Join(folder, kind+".pem"), "--json")))
	}
	for _, k := range keys {
		info, err := os.Stat(k.File)
		if err != nil || info.Mode().Perm() != 0o600 || k.Name != k.Selector+"._domainkey.example.org" || !strings.HasPrefix(k.Zone, k.Name+`. IN TXT "v=DKIM1; k=`+k.Type) {
			t.Errorf("%+v, %v", k, err)
		}
		if shown := s.mustRun("", "dkim", "record", "example.org", "--selector", k.Selector, "--key-file", k.File); shown != k.Zone+"\n" {
			t.Errorf("its record is shown as %s", shown)
		}
	}
	for _, wrong := range [][]string{
		{"dkim", "new", "example.org", "--out", keys[0].File}, {"dkim", "new", "../org", "--selector", "x"}, {"dkim", "new", "example.org", "--type", "dsa"}, {"dkim", "new", "example.org", "--out", filepath.Join(folder, "none", "x")},
		{"dkim", "record", "example.org", "--selector", "x", "--key-file", "/nowhere"}, {"dkim", "rotate", "email"}, {"dkim", "rotate", "nobody"},
	} {
		if ran := s.run("", wrong...); ran.code != 1 || ran.err == "" {
			t.Errorf("%v ended with %d: %s%s", wrong, ran.code, ran.out, ran.err)
		}
	}
	text := s.run("", "dkim", "new", "example.org", "--selector", "shown", "--out", filepath.Join(folder, "shown.pem"))
	if want := "dkim:\n  - {domain: example.org, selector: shown, key_file: \"" + filepath.Join(folder, "shown.pem") + "\"}\n"; !strings.HasSuffix(text.out, want) || !strings.Contains(text.out, "shown._domainkey.example.org. IN TXT") {
		t.Errorf("printed as %s%s", text.out, text.err)
	}

	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: unlimited, dkim: ["+keys[0].entry()+", "+keys[1].entry()+"]"))
	s.subscribe("ada@example.net")
	s.http.completed(s.http.publish(`{"title":"One"}`))
	next := into[[]madeKey](t, s.mustRun("", "dkim", "rotate", "email", "--in", "1000h", "--json"))
	if len(next) != 2 || filepath.Dir(next[0].File) != folder {
		t.Fatalf("the next keys are %+v", next)
	}
	s.http.completed(s.http.publish(`{"title":"Two"}`))
	if again := s.run("", "dkim", "rotate", "email"); again.code != 1 || !strings.Contains(again.err, "already") {
		t.Errorf("again it ended with %d: %s%s", again.code, again.out, again.err)
	}
	channel := s.mustRun("", "channel", "get", "email")
	for _, k := range slices.Concat(keys, next) {
		if !strings.Contains(channel, k.File) {
			t.Errorf("%s is not in %s", k.File, channel)
		}
	}
	// Its time has come: the channel says so, as a clock would.
	s.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, "rate: unlimited, dkim: ["+keys[0].entry()+", "+keys[1].entry()+", "+next[0].entry()[:len(next[0].entry())-1]+", from: 2026-01-01}, "+next[1].entry()[:len(next[1].entry())-1]+", from: 2026-01-01}]"))
	s.http.completed(s.http.publish(`{"title":"Three"}`))
	third := into[[]madeKey](t, s.mustRun("", "dkim", "rotate", "email", "--in", "0s", "--force", "--json"))
	s.http.completed(s.http.publish(`{"title":"Four"}`))

	all := slices.Concat(keys, next, third)
	mails := r.of("ada@example.net")
	if len(mails) != 4 {
		t.Fatalf("%d mails", len(mails))
	}
	for i, want := range [][]madeKey{keys, keys, next, third} {
		names := []string{want[0].Selector, want[1].Selector}
		if got := signers(t, mails[i], all...); !slices.Equal(got, names) {
			t.Errorf("mail %d is signed by %v, want %v", i+1, got, names)
		}
	}
	channel = s.mustRun("", "channel", "get", "email")
	if strings.Contains(channel, keys[0].File) || !strings.Contains(channel, next[0].File) {
		t.Errorf("the keys before the last are there still, or the last are not: %s", channel)
	}

	// The printed setting equals the setting of the channel.
	_, list, _ := strings.Cut(s.mustRun("", "dkim", "rotate", "email", "--in", "5h"), "\ndkim:\n  - ")
	inDocument := strings.ReplaceAll(strings.TrimSpace(list), "\n  - ", ", ")
	if changed := s.http.must(200, "POST", "/v1/apply?dry_run=true", yaml, news(r.addr, "rate: unlimited, dkim: ["+inDocument+"]")); strings.Count(inDocument, "from: ") < 2 || strings.Count(inDocument, "wait_for_dns: true") != 2 || strings.Contains(changed, "dkim") {
		t.Errorf("with %s an apply does %s", inDocument, changed)
	}

	told := channel + s.mustRun("", "status", "--json") + s.mustRun("", "audit", "--json") + s.mustRun("", "dkim", "--help")
	s.mustStop()
	told += s.logged()
	for _, k := range all {
		text, err := os.ReadFile(k.File)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(told, strings.Split(string(text), "\n")[1]) {
			t.Errorf("the key of %s is told", k.Name)
		}
	}
}
