package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/test/dnstest"
)

// A sender is a channel of which all is well in the DNS, until a test changes it.
type sender struct {
	Options
	dns     *dnstest.Server
	channel *catalog.Channel
	keys    map[string]*dkim.Key // by selector
}

func newSender(t *testing.T) *sender {
	t.Helper()
	s := &sender{Options: healthy(t), keys: map[string]*dkim.Key{}}
	s.channel = &catalog.Channel{Service: "news", Name: "mail", ChannelSettings: catalog.ChannelSettings{
		Driver: "smtp", Relay: "relay.fanfare.dev:25", Connections: 5, From: "News <news@mail.fanfare.dev>", Returns: "bounces.fanfare.dev",
	}}
	s.dns = &dnstest.Server{
		Texts: map[string][]string{
			"bounces.fanfare.dev":         {"another=text", "v=spf1 a:relay.fanfare.dev include:_spf.fanfare.dev -all"},
			"_spf.fanfare.dev":            {"v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 mx ?all"},
			"_dmarc.fanfare.dev":          {"v=DMARC1; p=reject; sp=quarantine; rua=mailto:dmarc@fanfare.dev"},
			"mail.fanfare.dev":            nil,
			"collector.invalid.test":      nil,
			"x._report._dmarc.unused.dev": nil,
		},
		Hosts: map[string]string{"relay.fanfare.dev": "192.0.2.1"},
		Mails: map[string][]string{"_spf.fanfare.dev": {"relay.fanfare.dev"}},
	}
	s.sign(t, "ed", dkim.Ed25519, time.Time{})
	s.sign(t, "rsa", dkim.RSA, time.Time{})
	return s
}

// privateKeys are made once: those of RSA take long.
var privateKeys = sync.OnceValue(func() map[string]*dkim.Private {
	all := map[string]*dkim.Private{}
	for _, algorithm := range []string{dkim.Ed25519, dkim.RSA} {
		private, err := dkim.Generate(algorithm)
		if err != nil {
			panic(err)
		}
		all[algorithm] = private
	}
	return all
})

// look looks at what the DNS says of the channel, and at nothing else.
func (s *sender) look(t *testing.T) *Report {
	t.Helper()
	s.askedOf(t, s.dns)
	r := &Report{}
	s.keyFiles(r, s.channel)
	s.mail(t.Context(), r, []*catalog.Channel{s.channel})
	return r
}

// sign gives the channel a key, and its record to the DNS.
func (s *sender) sign(t *testing.T, selector, algorithm string, from time.Time) {
	t.Helper()
	private := privateKeys()[algorithm]
	text, err := private.PEM()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), selector+".pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	key := &dkim.Key{Domain: "fanfare.dev", Selector: selector, From: from, Private: private}
	s.channel.DKIM = append(s.channel.DKIM, catalog.DKIMKey{Domain: key.Domain, Selector: selector, KeyFile: file, From: from})
	s.keys[selector], s.dns.Texts[key.Name()] = key, []string{private.Record()}
}

func TestDomainWithAllRecordsHasNoProblems(t *testing.T) {
	s := newSender(t)
	s.Channels = func(context.Context) ([]*catalog.Channel, error) { return []*catalog.Channel{s.channel}, nil }
	s.askedOf(t, s.dns)
	r := Look(t.Context(), s.Options)
	for check, what := range map[string]string{
		"SPF bounces.fanfare.dev":        "(3 of 10 lookups)",
		"DKIM ed._domainkey.fanfare.dev": "it signs, and its record is in the DNS", "DKIM rsa._domainkey.fanfare.dev": "it signs",
		"DMARC mail.fanfare.dev": "aligned with From: SPF of bounces.fanfare.dev, DKIM of fanfare.dev; for other mail, receivers are asked to treat it as spam (_dmarc.fanfare.dev)",
	} {
		if list := r.of(check); len(list) != 1 || list[0].Level != OK || list[0].Mend != "" || !strings.Contains(list[0].What, what) {
			t.Errorf("%s: %+v", check, list)
		}
	}
}

func TestDNSProblemsAreReportedWithTheRecord(t *testing.T) {
	const spf, dmarc = "SPF bounces.fanfare.dev", "DMARC mail.fanfare.dev"
	text := func(name string, texts ...string) func(*testing.T, *sender) {
		return func(_ *testing.T, s *sender) { s.dns.Texts[name] = texts }
	}
	is := func(record string) func(*testing.T, *sender) { return text("bounces.fanfare.dev", record) }
	asks := func(record string) func(*testing.T, *sender) { return text("_dmarc.fanfare.dev", record) }
	var long strings.Builder
	for i := range 11 {
		fmt.Fprintf(&long, " a:relay.fanfare.dev/%d", i+20)
	}
	for name, test := range map[string]struct {
		change     func(t *testing.T, s *sender)
		check      string
		level      Level
		what, mend string
	}{
		"no SPF": {is("v=spf10 all"), spf, Warning, "no record", `bounces.fanfare.dev. IN TXT "v=spf1 a:relay.fanfare.dev ~all"`},
		"no SPF, and relays here": {func(_ *testing.T, s *sender) {
			s.channel.Relay, s.dns.Texts["bounces.fanfare.dev"] = "127.0.0.1:25", nil
		}, spf, Warning, "no record", `"v=spf1 ip4:ADDRESS ~all", where ADDRESS`},
		"no SPF, and an address": {func(_ *testing.T, s *sender) {
			s.channel.Relay, s.dns.Texts["bounces.fanfare.dev"] = "192.0.2.7:25", nil
		}, spf, Warning, "no record", `"v=spf1 ip4:192.0.2.7 ~all"`},
		"two of SPF":       {text("bounces.fanfare.dev", "v=spf1 mx -all", "V=SPF1 mx ip4:192.0.2.1 ~all"), spf, Wrong, "2 records", `bounces.fanfare.dev. IN TXT "v=spf1 mx ip4:192.0.2.1 -all"`},
		"anybody":          {is("v=spf1 mx +all"), spf, Warning, "permits every sender", `"v=spf1 mx ~all"`},
		"anybody, shortly": {is("v=spf1 ALL"), spf, Warning, "permits every sender", `"v=spf1 ~all"`},
		"who knows":        {is("v=spf1 ip4:192.0.2.1 ?all"), spf, Warning, "?all", `"v=spf1 ip4:192.0.2.1 ~all"`},
		"no end":           {is("v=spf1 ip4:192.0.2.1"), spf, Warning, "does not restrict other senders", `"v=spf1 ip4:192.0.2.1 ~all"`},
		"another's end":    {is("v=spf1 redirect=_spf.fanfare.dev"), spf, Warning, "?all", `"v=spf1 include:_spf.fanfare.dev ~all"`},
		"another's record": {func(_ *testing.T, s *sender) {
			s.dns.Texts["bounces.fanfare.dev"], s.dns.Texts["_spf.fanfare.dev"] = []string{"v=spf1 redirect=_spf.fanfare.dev"}, []string{"v=spf1 -all"}
		}, spf, OK, "(1 of 10", ""},
		"anybody, says another":    {func(_ *testing.T, s *sender) { s.dns.Texts["_spf.fanfare.dev"] = []string{"v=spf1 +all"} }, spf, Warning, "permits every sender because of include:_spf.fanfare.dev", "remove include:_spf.fanfare.dev"},
		"a name that exists":       {is("v=spf1 exists:relay.fanfare.dev -all"), spf, Warning, "permits every sender because of exists:relay.fanfare.dev", "remove exists:"},
		"nobody, says another":     {is("v=spf1 include:_spf.fanfare.dev -all"), spf, OK, "(2 of 10", ""},
		"what depends on the mail": {is("v=spf1 include:%{i}.fanfare.dev exists:%{l}.x.dev exp=why.fanfare.dev note=1 ~all"), spf, OK, "(2 of 10", ""},
		"a word":                   {is("v=spf1 ipv4:192.0.2.1 -all"), spf, Wrong, "ipv4:192.0.2.1 is not an SPF term", `"v=spf1 ipv4:192.0.2.1 -all"`},
		"an address of the other":  {is("v=spf1 ip4:2001:db8::1 -all"), spf, Wrong, "ip4:2001:db8::1", ""},
		"no domain":                {is("v=spf1 include: -all"), spf, Wrong, "include: must have a domain", ""},
		"a length":                 {is("v=spf1 a/33 -all"), spf, Wrong, "a/33", ""},
		"two redirects":            {is("v=spf1 redirect=a.dev redirect=b.dev"), spf, Wrong, "once", ""},
		"too many":                 {is("v=spf1" + long.String() + " -all"), spf, Wrong, "more than 10 lookups; the first lookup above the limit is a:relay.fanfare.dev/30", "ip4:"},
		"around and around":        {is("v=spf1 include:bounces.fanfare.dev -all"), spf, Wrong, "more than 10 lookups", ""},
		"an end before too many":   {is("v=spf1 -all" + long.String()), spf, OK, "(0 of 10", ""},
		"names that are not there": {is("v=spf1 a:a.fanfare.dev mx:b.fanfare.dev a:c.fanfare.dev -all"), spf, Wrong, "the first name above the limit is a:c.fanfare.dev", ""},
		"a record that is not":     {is("v=spf1 include:mail.fanfare.dev -all"), spf, Wrong, "include:mail.fanfare.dev refers to a domain with 0 SPF records", ""},
		"a record of others":       {func(_ *testing.T, s *sender) { s.dns.Texts["_spf.fanfare.dev"] = []string{"v=spf1 what -all"} }, spf, Wrong, "include:_spf.fanfare.dev: what is not an SPF term", ""},
		"too many hosts": {func(_ *testing.T, s *sender) {
			s.dns.Mails["_spf.fanfare.dev"] = strings.Fields("a b c d e f g h i j k")
		}, spf, Wrong, "11 hosts", ""},
		"a DNS that fails":          {func(_ *testing.T, s *sender) { s.dns.Broken = map[string]bool{"bounces.fanfare.dev": true} }, spf, Warning, "could not be looked up", "resolv.conf"},
		"a DNS that fails for one":  {func(_ *testing.T, s *sender) { s.dns.Broken = map[string]bool{"_spf.fanfare.dev": true} }, spf, Warning, "could not be looked up", "resolv.conf"},
		"what is slow":              {is("v=spf1 ptr -all"), spf, Warning, "ptr", "addresses"},
		"no returns":                {func(_ *testing.T, s *sender) { s.channel.Returns = "" }, "SPF mail.fanfare.dev", Warning, "no record", `mail.fanfare.dev. IN TXT "v=spf1`},
		"a sender":                  {func(_ *testing.T, s *sender) { s.channel.Returns, s.channel.Sender = "", "b@Bounces.fanfare.dev" }, spf, OK, "(3 of 10", ""},
		"no DMARC":                  {text("_dmarc.fanfare.dev"), dmarc, Warning, "no record", `_dmarc.fanfare.dev. IN TXT "v=DMARC1; p=none; rua=mailto:dmarc@fanfare.dev"`},
		"two of DMARC":              {text("_dmarc.fanfare.dev", "v=DMARC1; p=none", "v=DMARC1; p=reject"), dmarc, Wrong, "2 records", `_dmarc.fanfare.dev. IN TXT "v=DMARC1; p=none"`},
		"no policy":                 {asks("v=DMARC1; rua=mailto:dmarc@fanfare.dev"), dmarc, Wrong, "missing a 'p'", `"v=DMARC1; p=none;`},
		"a policy of its own":       {text("_dmarc.mail.fanfare.dev", "v=DMARC1; p=None"), dmarc, OK, "for other mail, receivers are asked only to send reports (_dmarc.mail.fanfare.dev)", ""},
		"strict of both":            {asks("v=DMARC1; p=reject; adkim=s; aspf=s"), dmarc, Wrong, "neither bounces.fanfare.dev (SPF, strict) nor fanfare.dev (DKIM, strict) is aligned with From; for such mail, receivers are asked to reject it", "fanfare dkim new mail.fanfare.dev"},
		"strict of both, to report": {asks("v=DMARC1; p=none; adkim=s; aspf=s"), dmarc, Warning, "asked only to send reports", "fanfare dkim new mail.fanfare.dev"},
		"strict of SPF":             {asks("v=DMARC1; p=reject; aspf=s"), dmarc, OK, "aligned with From: DKIM of fanfare.dev;", ""},
		"strict of DKIM":            {asks("v=DMARC1; p=reject; adkim=s"), dmarc, Warning, "only SPF counts", "fanfare dkim new"},
		"others send, and nobody signs": {func(_ *testing.T, s *sender) {
			s.channel.DKIM, s.channel.Returns, s.channel.Sender = nil, "", "b@elsewhere.dev"
		}, dmarc, Warning, "elsewhere.dev is not aligned with From (relaxed) and channel news/mail does not sign", "fanfare dkim new mail.fanfare.dev"},
		"reports to others": {asks("v=DMARC1; p=none; rua=mailto:a@Elsewhere.dev!10m"), dmarc, Warning, "a@elsewhere.dev", `fanfare.dev._report._dmarc.elsewhere.dev. IN TXT "v=DMARC1"`},
		"reports to a page": {asks("v=DMARC1; p=none; rua=https://a.dev/x"), dmarc, Warning, "not a mailto:", "rua=mailto:dmarc@fanfare.dev"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSender(t)
			test.change(t, s)
			s.found(t, test.check, test.level, test.what, test.mend)
		})
	}
}

// found looks at the channel, and expects one finding first.
func (s *sender) found(t *testing.T, check string, level Level, what, mend string) {
	t.Helper()
	r := s.look(t)
	list := r.of(check)
	if len(list) == 0 {
		t.Fatalf("nothing is said of it: %+v", r.Findings)
	}
	if f := list[0]; f.Level != level || !strings.Contains(f.What, what) || !strings.Contains(f.Mend, mend) || (f.Level != OK) != (f.Mend != "") {
		t.Errorf("%+v", f)
	}
}

func TestWrongDKIMRecordIsReportedWithTheRightOne(t *testing.T) {
	const at = "DKIM rsa._domainkey.fanfare.dev"
	record := func(change func(*sender) []string) func(*testing.T, *sender) {
		return func(_ *testing.T, s *sender) { s.dns.Texts["rsa._domainkey.fanfare.dev"] = change(s) }
	}
	soon := time.Now().Add(72 * time.Hour)
	for name, test := range map[string]struct {
		change     func(t *testing.T, s *sender)
		selector   string
		level      Level
		what, mend string
	}{
		"none":        {record(func(*sender) []string { return nil }), "rsa", Wrong, "it signs, but its record is not in the DNS", "add to the DNS: "},
		"another key": {record(func(s *sender) []string { return []string{s.keys["ed"].Record()} }), "rsa", Wrong, "the record is for the key type ed25519, but the key has the type rsa", "replace it in the DNS"},
		"revoked":     {record(func(*sender) []string { return []string{"v=DKIM1; p="} }), "rsa", Wrong, "revokes", "replace it in the DNS"},
		"cut off": {record(func(s *sender) []string {
			text := s.keys["rsa"].Record()
			return []string{text[:255]}
		}), "rsa", Wrong, "does not match the key", "replace it in the DNS"},
		"two":      {record(func(s *sender) []string { return []string{s.keys["rsa"].Record(), "v=DKIM1; p="} }), "rsa", Wrong, "2 records", "keep only this record"},
		"a test":   {record(func(s *sender) []string { return []string{s.keys["rsa"].Record() + "; t=y"} }), "rsa", Warning, "test flag", "replace it in the DNS"},
		"the next": {func(t *testing.T, s *sender) { s.sign(t, "next", dkim.RSA, soon) }, "next", OK, "it starts to sign on " + soon.Format(time.RFC3339), ""},
		"the next, that nobody knows": {func(t *testing.T, s *sender) {
			s.sign(t, "next", dkim.RSA, soon)
			delete(s.dns.Texts, "next._domainkey.fanfare.dev")
		}, "next", Warning, ", but its record is not in the DNS", "add to the DNS: "},
		"the next, that waits for its record": {func(t *testing.T, s *sender) {
			s.sign(t, "next", dkim.RSA, time.Now().Add(-time.Hour))
			s.channel.DKIM[len(s.channel.DKIM)-1].WaitForDNS = true
			delete(s.dns.Texts, "next._domainkey.fanfare.dev")
		}, "next", Warning, "it does not sign until its record is found, but its record is not in the DNS", "add to the DNS: "},
		"the next, whose record was seen by the server and is gone": {func(t *testing.T, s *sender) {
			s.sign(t, "next", dkim.RSA, time.Now().Add(-time.Hour))
			s.channel.DKIM[len(s.channel.DKIM)-1].WaitForDNS = true
			delete(s.dns.Texts, "next._domainkey.fanfare.dev")
			s.answered = &Server{}
		}, "next", Wrong, "it signs, but its record is not in the DNS", "add to the DNS: "},
		"Ed25519 alone": {func(_ *testing.T, s *sender) { s.channel.DKIM = s.channel.DKIM[:1] }, "ed", OK, "it signs", ""},
		"no file":       {func(_ *testing.T, s *sender) { s.channel.DKIM[1].KeyFile = "/none" }, "rsa", Wrong, "cannot read key_file /none: no such file", "create another with fanfare dkim new fanfare.dev"},
		"no key":        {func(_ *testing.T, s *sender) { s.channel.DKIM[1].KeyFile = os.DevNull }, "rsa", Wrong, os.DevNull + " cannot be used", "fanfare dkim new fanfare.dev"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSender(t)
			test.change(t, s)
			mend := test.mend
			if strings.HasSuffix(mend, "DNS: ") || strings.HasPrefix(mend, "replace") || strings.HasPrefix(mend, "keep") {
				mend = s.keys[test.selector].ZoneLine()
			}
			s.found(t, strings.Replace(at, "rsa", test.selector, 1), test.level, test.what, mend)
		})
	}
}

func TestRetiredKeysAreNotLookedUp(t *testing.T) {
	s := newSender(t)
	s.sign(t, "after", dkim.RSA, time.Now().Add(-time.Hour))
	delete(s.dns.Texts, "rsa._domainkey.fanfare.dev")
	if r := s.look(t); len(r.of("DKIM rsa._domainkey.fanfare.dev")) != 0 || r.Wrong+r.Warnings > 0 {
		t.Errorf("%+v", r.Findings)
	}
}

func TestEd25519AloneIsReported(t *testing.T) {
	s := newSender(t)
	s.channel.DKIM = s.channel.DKIM[:1]
	for _, f := range s.look(t).of("DKIM ed._domainkey.fanfare.dev") {
		if f.Level == Warning && strings.Contains(f.What, "only with Ed25519") && strings.Contains(f.Mend, "--type rsa") {
			return
		}
	}
	t.Error("nothing is said of it")
}

// A resolver that does not answer is waited for once, and not for each name.
func TestSilentResolverIsAskedOnce(t *testing.T) {
	s := newSender(t)
	second := *s.channel
	second.Name, second.From = "other", "a@another.dev"
	asked := 0
	s.LookupTXT = func(context.Context, string) ([]string, error) {
		asked++
		return nil, &net.DNSError{Err: "i/o timeout", IsTimeout: true}
	}
	r := &Report{}
	if s.mail(t.Context(), r, []*catalog.Channel{s.channel, &second}); asked != 1 || r.Wrong > 0 || len(r.of("DMARC mail.fanfare.dev")) != 1 || len(r.of("DMARC another.dev")) != 0 {
		t.Errorf("it was asked %d times: %+v", asked, r.Findings)
	}
}

func TestMailThatStaysInsideIsNotLookedUp(t *testing.T) {
	for name, change := range map[string]func(s *sender){
		"mail is captured":                  func(s *sender) { s.Config.Capture = "smtp://127.0.0.1:1025" },
		"a name reserved for documentation": func(s *sender) { s.channel.From = "news@mail.example.org" },
		"a local name":                      func(s *sender) { s.channel.From = "news@localhost" },
		"files":                             func(s *sender) { s.channel.Driver, s.channel.Path = "file", os.DevNull },
	} {
		s := newSender(t)
		change(s)
		s.LookupTXT = func(_ context.Context, name string) ([]string, error) {
			return nil, fmt.Errorf("%s: %s was looked up", t.Name(), name)
		}
		r := &Report{}
		if s.mail(t.Context(), r, []*catalog.Channel{s.channel}); strings.Contains(fmt.Sprint(r.Findings), "was looked up") {
			t.Errorf("%s: %+v", name, r.Findings)
		}
	}
}

// FuzzSPF reads whatever stands in a DNS.
func FuzzSPF(f *testing.F) {
	for _, text := range []string{"v=spf1", "v=spf1 +a:b.c/24//64 -all", "v=spf1 :/=", "v=spf1 ip4:1.2.3.4/33 a//129 =x - ~"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(strings.Fields(text)) == 0 {
			return
		}
		terms, err := parseSPF(text)
		if err == nil && len(terms) != len(strings.Fields(text))-1 {
			t.Errorf("%q has %d terms", text, len(terms))
		}
		_ = united([]string{text})
	})
}

func TestDomainOfTwoChannelsIsReportedOnce(t *testing.T) {
	s := newSender(t)
	delete(s.dns.Texts, "bounces.fanfare.dev")
	second := *s.channel
	second.Name = "other"
	s.askedOf(t, s.dns)
	r := &Report{}
	s.keyFiles(r, s.channel)
	s.mail(t.Context(), r, []*catalog.Channel{s.channel, &second})
	if len(r.of("SPF bounces.fanfare.dev")) != 1 || len(r.of("DMARC mail.fanfare.dev")) != 1 || r.Warnings != 1 {
		t.Errorf("%+v", r.Findings)
	}
}
