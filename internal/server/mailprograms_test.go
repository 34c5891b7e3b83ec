package server_test

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// unusedPort returns a port on which nobody listens.
func unusedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// linksIn returns the links to a page in the messages of a file channel for an address, the oldest first.
func linksIn(t *testing.T, dir, to, page string) (links []string) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".eml") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		flat := strings.NewReplacer("=\r\n", "", "=3D", "=").Replace(string(b))
		if !strings.Contains(flat, "To: "+to) && !strings.Contains(flat, "To: <"+to) {
			continue
		}
		if found := regexp.MustCompile(`https://news\.example\.org(/` + page + `/[A-Za-z0-9_-]+)`).FindStringSubmatch(flat); found != nil {
			links = append(links, found[1])
		}
	}
	return links
}

// linkTo waits for a link to a page.
func (s *testServer) linkTo(dir, to, page string) string {
	s.t.Helper()
	var links []string
	s.eventually("a link to /"+page+"/ for "+to, func() bool { links = linksIn(s.t, dir, to, page); return len(links) > 0 })
	return links[len(links)-1]
}

func TestRecipientsCreateAppPasswordsOnTheirPage(t *testing.T) {
	cert, key, pool := certificate(t)
	port, mails := unusedPort(t), t.TempDir()
	s := &testServer{t: t, dir: t.TempDir(), database: pgtest.Chosen(t), sink: sink.New(sink.Config{})}
	s.change = func(c *config.Config) {
		c.IMAPSListen, c.IMAPTLSCert, c.IMAPTLSKey, c.MailHost = "127.0.0.1:"+port, cert, key, "mx.example.org"
	}
	s.open()
	t.Cleanup(func() { s.app.Stop() })
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
channels:
  paper: {driver: file, path: %q, from: "News <news@example.org>"}
topics:
  story: {template: story}
templates:
  story: {subject: "{{ event.title }}", text: "{{ preferences_url }}"}
`, mails))
	for _, who := range []string{"joe@example.org", "ann@example.org"} {
		s.must(201, "PUT", "/v1/subscriptions/"+who, "application/json", `{"topic":"story","channel":"paper","to":"`+who+`"}`)
	}
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"x"}`)
	preferences := s.linkTo(mails, "joe@example.org", "p")

	const offer = `value="programs"`
	if page := s.must(200, "GET", preferences, "", ""); strings.Contains(page, offer) {
		t.Error("mail programs are offered to a person without a mailbox")
	}
	s.must(201, "PUT", "/v1/mailboxes/joe@example.org", "", "")
	if page := s.must(200, "GET", preferences, "", ""); !strings.Contains(page, offer) {
		t.Errorf("mail programs are not offered: %s", page)
	}
	const form = "application/x-www-form-urlencoded"
	ofAnn := s.linkTo(mails, "ann@example.org", "p")
	for _, link := range []string{ofAnn, preferences} { // the answer does not tell who has a mailbox
		if page := s.must(200, "POST", link, form, "do=programs"); !strings.Contains(page, "We have sent a link") {
			t.Errorf("the page is %s", page)
		}
	}
	programs := s.linkTo(mails, "joe@example.org", "m")
	if links := linksIn(t, mails, "ann@example.org", "m"); len(links) > 0 {
		t.Errorf("a person without a mailbox got %s", links)
	}
	s.must(404, "GET", strings.Replace(preferences, "/p/", "/m/", 1), "", "") // a link to the preferences does not open the page
	page := s.must(200, "GET", programs, "", "")
	for _, want := range []string{"joe@example.org", "mx.example.org, port " + port + ", SSL/TLS", "You have no passwords yet"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if strings.Contains(page, "SMTP") {
		t.Errorf("the page has a server that does not exist: %s", page)
	}

	create := url.Values{"do": {"create"}, "name": {"phone & <tablet>"}, "last": {"0"}}.Encode()
	made := s.must(200, "POST", programs, form, create)
	found := regexp.MustCompile(`<code>([a-z0-9]{5}(?:-[a-z0-9]{5}){3})</code>`).FindStringSubmatch(made)
	if found == nil || !strings.Contains(made, "phone &amp; &lt;tablet&gt;") {
		t.Fatalf("the page is %s", made)
	}
	again := s.must(200, "POST", programs, form, create)
	if strings.Contains(again, "<code>") || strings.Count(again, `value="revoke"`) != 1 || !strings.Contains(again, `role="alert"`) {
		t.Errorf("the form was sent again: %s", again)
	}
	if page := s.must(200, "POST", programs, form, url.Values{"do": {"create"}, "name": {"a\x01b"}, "last": {regexp.MustCompile(`name="last" value="(\d+)"`).FindStringSubmatch(again)[1]}}.Encode()); !strings.Contains(page, `role="alert"`) || strings.Contains(page, "<code>") {
		t.Errorf("a name with a control character: %s", page)
	}

	login := func(want string) {
		t.Helper()
		imap := dial(t, "127.0.0.1:"+port, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "mx.example.org"})
		imap.until("", "* OK")
		imap.until("a LOGIN joe@example.org "+found[1], want)
	}
	login("a OK")
	id := regexp.MustCompile(`name="id" value="(\d+)"`).FindStringSubmatch(again)[1]
	for range 2 {
		if page := s.must(200, "POST", programs, form, "do=revoke&id="+id); !strings.Contains(page, "no longer works") || !strings.Contains(page, "You have no passwords yet") {
			t.Errorf("the page is %s", page)
		}
	}
	login("a NO")
	audit := s.must(200, "GET", "/v1/audit?kind=app-password", "", "")
	if strings.Count(audit, `"kind":"app-password"`) != 2 || !strings.Contains(audit, `"action":"create"`) || !strings.Contains(audit, `"action":"revoke"`) || strings.Contains(audit, "@") {
		t.Errorf("the audit log is %s", audit)
	}

	person := regexp.MustCompile(`"id":"(per-[^"]+)"`).FindStringSubmatch(s.must(200, "GET", "/v1/subscribers?address=joe@example.org", "", ""))
	if person == nil {
		t.Fatal("the subscriber is unknown")
	}
	s.must(200, "POST", "/v1/subscribers/"+person[1]+"/erase", "application/json", "{}")
	if page := s.must(200, "POST", programs, form, create); !strings.Contains(page, "This link has expired") {
		t.Errorf("the link of a person who does not exist: %s", page)
	}
}

func TestMailProgramsFindTheServers(t *testing.T) {
	cert, key, _ := certificate(t)
	imaps, submission := unusedPort(t), unusedPort(t)
	s := &testServer{t: t, dir: t.TempDir(), database: pgtest.Chosen(t), sink: sink.New(sink.Config{})}
	s.change = func(c *config.Config) {
		c.IMAPSListen, c.IMAPTLSCert, c.IMAPTLSKey = "127.0.0.1:"+imaps, cert, key
		c.SubmissionListen, c.SubmissionTLSCert, c.SubmissionTLSKey = "127.0.0.1:"+submission, cert, key
	}
	s.open()
	t.Cleanup(func() { s.app.Stop() })
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\n")
	s.must(201, "PUT", "/v1/mailboxes/joe@example.org", "", "")

	const path = "/.well-known/autoconfig/mail/config-v1.1.xml"
	known := s.must(200, "GET", path+"?emailaddress=joe@example.org", "", "")
	for _, want := range []string{"<domain>example.org</domain>", "<hostname>news.example.org</hostname>", "<port>" + imaps + "</port>", "<socketType>SSL</socketType>", "<port>" + submission + "</port>", "<socketType>STARTTLS</socketType>", "<username>%EMAILADDRESS%</username>"} {
		if !strings.Contains(known, want) {
			t.Errorf("the document lacks %q: %s", want, known)
		}
	}
	for _, of := range []string{"nobody@example.org", "joe@Example.ORG"} {
		if got := s.must(200, "GET", path+"?emailaddress="+of, "", ""); got != known {
			t.Errorf("of %s: %s", of, got)
		}
	}
	if got := s.must(200, "GET", "/mail/config-v1.1.xml?emailaddress="+url.QueryEscape("x@m\u00fcller.example"), "", ""); !strings.Contains(got, "<domain>xn--mller-kva.example</domain>") {
		t.Errorf("an internationalized domain: %s", got)
	}
	if got := s.must(200, "GET", path+"?emailaddress=%3Cx%3E", "", ""); !strings.Contains(got, "<domain>news.example.org</domain>") {
		t.Errorf("without a valid address: %s", got)
	}

	records := s.must(200, "GET", "/v1/mailbox-dns?domain=example.org", "", "")
	for _, want := range []string{
		`{"name":"_imaps._tcp.example.org.","type":"SRV","value":"0 1 ` + imaps + ` news.example.org."}`, `{"name":"_imap._tcp.example.org.","type":"SRV","value":"0 0 0 ."}`,
		`{"name":"_submission._tcp.example.org.","type":"SRV","value":"10 1 ` + submission + ` news.example.org."}`, `{"name":"_jmap._tcp.example.org.","type":"SRV","value":"0 1 443 news.example.org."}`,
		`{"name":"autoconfig.example.org.","type":"CNAME","value":"news.example.org."}`,
	} {
		if !strings.Contains(records, want) {
			t.Errorf("the records lack %s: %s", want, records)
		}
	}
	s.must(422, "GET", "/v1/mailbox-dns?domain=a_b", "", "")
	s.must(422, "GET", "/v1/mailbox-dns", "", "")
}
