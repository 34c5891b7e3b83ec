package inbound

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/xdg-go/scram"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/mail/recipients"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/apppassword"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// post is a server for mailboxes with its store.
type post struct {
	*world
	store    *mailbox.Store
	password string // of joe
	client   *tls.Config
}

// broken is a store that cannot deliver to some accounts.
type broken struct {
	*mailbox.Store
	errs map[mailbox.AccountID]error
}

func (b broken) Deliver(ctx context.Context, d mailbox.Delivery) []error {
	errs := make([]error, len(d.To))
	var rest []mailbox.Owner
	for i, to := range d.To {
		if errs[i] = b.errs[to.ID]; errs[i] == nil {
			rest = append(rest, to)
		}
	}
	if len(rest) > 0 {
		d.To = rest
		for _, err := range b.Store.Deliver(ctx, d) {
			if err != nil {
				return slices.Repeat([]error{err}, len(errs))
			}
		}
	}
	return errs
}

// startPost starts a server with the accounts 1 joe, 2 ann and 3 full (whose quota is one message), all @example.org.
func startPost(t testing.TB, kind Kind, change ...func(*Options)) *post {
	t.Helper()
	p := &post{store: mailbox.New(storetest.OpenAt(t, t.TempDir()), mailbox.Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})}
	t.Cleanup(p.store.Close)
	for i, name := range []string{"joe", "ann", "full"} {
		a, err := p.store.Create(t.Context(), mailbox.Owner{ID: mailbox.AccountID(i + 1), Service: "press", Address: name + "@example.org"})
		if err != nil {
			t.Fatal(err)
		}
		if name != "joe" {
			continue
		}
		p.password = apppassword.Generate()
		v, err := apppassword.Verifier(a.Address, p.password, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.store.AddCredential(t.Context(), a.ID, &mailbox.Credential{Name: "phone", Verifier: v}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.store.SetQuota(t.Context(), 3, 0, 1); err != nil {
		t.Fatal(err)
	}
	secured, pool := selfSigned(t)
	p.client = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "mx.example.org"}
	p.world = start(t, append([]func(*Options){func(o *Options) {
		o.Kind, o.TLS, o.Mailboxes, o.Listener = kind, secured, p.store, "test"
		o.Recipients = recipients.New(recipients.Options{Accounts: p.store.RecipientsOf, Clock: clock.System{}})
		o.Logins = apppassword.NewChecker(p.store, clock.System{}, slog.New(slog.DiscardHandler))
	}}, change...)...)
	return p
}

// contents returns the messages in the inbox of an account.
func (p *post) contents(id mailbox.AccountID) []string {
	p.t.Helper()
	list, _, err := p.store.Messages(p.t.Context(), id, mailbox.InboxID)
	if err != nil {
		p.t.Fatal(err)
	}
	var all []string
	for _, m := range list {
		content, err := p.store.Content(p.t.Context(), id, m.Email)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, string(content))
	}
	return all
}

// lhlo returns a caller after LHLO.
func (p *post) lhlo() *caller {
	p.t.Helper()
	c := p.call()
	c.expect("", "220 mx.example.org LMTP")
	c.expect("LHLO peer.example.com", "250-mx.example.org\r\n")
	return c
}

// secured returns a caller after STARTTLS and EHLO.
func (p *post) secured() *caller {
	p.t.Helper()
	c := p.greeted()
	c.expect("STARTTLS", "220 2.0.0")
	conn := tls.Client(c.Conn, p.client)
	if err := conn.HandshakeContext(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	c = wrap(p.t, conn)
	c.expect("EHLO peer.example.com", "250-mx.example.org\r\n")
	return c
}

// loggedIn returns a caller that is logged in as joe.
func (p *post) loggedIn() *caller {
	p.t.Helper()
	c := p.secured()
	c.expect("AUTH PLAIN "+plain("joe@example.org", p.password), "235 2.7.0")
	return c
}

func plain(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password))
}

func TestLMTPAnswersForEachRecipientAfterTheMessageIsDurable(t *testing.T) {
	p := startPost(t, LMTP)
	c := p.lhlo()
	c.expect("MAIL FROM:<news@Peer.example.com> SIZE=100 BODY=8BITMIME", "250 2.1.0")
	c.expect("RCPT TO:<joe@EXAMPLE.org>", "250 2.1.5")
	c.expect("RCPT TO:<nobody@example.org>", "550 5.1.1")
	c.expect("RCPT TO:<not an address>", "550 5.1.3")
	c.expect("RCPT TO:<Ann@example.org>", "250 2.1.5")
	c.expect("RCPT TO:<full@example.org>", "250 2.1.5")
	c.expect("RCPT TO:<joe@example.org>", "250 2.1.5") // the same again
	c.expect("DATA", "354 ")
	c.send("Subject: h\xc3\xa4\r\n\r\n..\r\n.dot\r\nend\r\n.\r\n")
	for range 4 {
		c.expect("", "250 2.6.0")
	}
	c.expect("NOOP", "250 2.0.0")
	for _, id := range []mailbox.AccountID{1, 2, 3} {
		all := p.contents(id)
		if len(all) != 1 || !strings.HasPrefix(all[0], "Return-Path: <news@Peer.example.com>\r\nReceived: from peer.example.com ([127.0.0.1])\r\n by mx.example.org with LMTP; ") ||
			!strings.HasSuffix(all[0], "\r\nSubject: h\xc3\xa4\r\n\r\n.\r\ndot\r\nend\r\n") {
			t.Errorf("account %d has %q", id, all)
		}
	}
	c.expect("MAIL FROM:<>", "250 2.1.0")
	c.expect("RCPT TO:<full@example.org>", "452 4.2.2")
	c.expect("DATA", "503 5.5.1")
	if n := p.Counts(); n.Delivered != 4 || n.Refused != 3 {
		t.Errorf("%+v", n)
	}
}

func TestLMTPConnectionsCarryAnyNumberOfMessages(t *testing.T) {
	p := startPost(t, LMTP)
	c := p.lhlo()
	for range maxMessages + 1 {
		c.send("MAIL FROM:<>\r\nRCPT TO:<joe@example.org>\r\nBDAT 0 LAST\r\n")
		for range 3 {
			c.expect("", "250 ")
		}
	}
}

func TestLMTPSaysWhichRecipientsFailed(t *testing.T) {
	p := startPost(t, LMTP)
	c := p.lhlo()
	c.expect("MAIL FROM:<>", "250 ")
	for _, to := range []string{"joe", "full", "ann"} {
		c.expect("RCPT TO:<"+to+"@example.org>", "250 ")
	}
	other := p.lhlo() // fills the mailbox after RCPT
	other.expect("MAIL FROM:<>", "250 ")
	other.expect("RCPT TO:<full@example.org>", "250 ")
	other.expect("DATA", "354 ")
	other.send("x: y\r\n.\r\n")
	other.expect("", "250 2.6.0")
	c.expect("DATA", "354 ")
	c.send("x: z\r\n.\r\n")
	c.expect("", "250 2.6.0")
	c.expect("", "452 4.2.2")
	c.expect("", "250 2.6.0")
	c.expect("RSET", "250 2.0.0")
	if n := len(p.contents(3)); n != 1 {
		t.Errorf("the full mailbox has %d messages", n)
	}
}

func TestLMTPSpeaksWithAnotherLibrary(t *testing.T) {
	p := startPost(t, LMTP)
	c := p.call()
	client := smtp.NewClientLMTP(c.Conn)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(client.Hello("peer.example.com"))
	must(client.Mail("news@peer.example.com", nil))
	must(client.Rcpt("joe@example.org", nil))
	must(client.Rcpt("ann@example.org", nil))
	if err := client.Rcpt("nobody@example.org", nil); err == nil {
		t.Error("nobody has a mailbox")
	}
	data, err := client.Data()
	must(err)
	_, err = fmt.Fprint(data, "Subject: x\r\n\r\n.\r\n")
	must(err)
	answered, err := data.CloseWithLMTPResponse()
	must(err)
	if len(answered) != 2 || answered["joe@example.org"] == nil {
		t.Errorf("answers %v", answered)
	}
	must(client.Quit())
	if all := p.contents(2); len(all) != 1 || !strings.HasSuffix(all[0], "Subject: x\r\n\r\n.\r\n") {
		t.Errorf("ann has %q", all)
	}
}

// standingClock stands still until it is advanced.
type standingClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *standingClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *standingClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestMessagesToAnAddressReachAllItsServices(t *testing.T) {
	now := &standingClock{now: time.Now()}
	p := startPost(t, LMTP, func(o *Options) { o.Clock = now })
	if _, err := p.store.Create(t.Context(), mailbox.Owner{ID: 4, Service: "shop", Address: "joe@example.org"}); err != nil {
		t.Fatal(err)
	}
	c := p.lhlo()
	deliver := func(want string) {
		t.Helper()
		c.expect("MAIL FROM:<>", "250 ")
		c.expect("RCPT TO:<joe@example.org>", "250 ")
		c.expect("DATA", "354 ")
		c.send("x: y\r\n.\r\n")
		c.expect("", want)
	}
	deliver("250 2.6.0")
	if len(p.contents(1)) != 1 || len(p.contents(4)) != 1 || !strings.Contains(p.contents(4)[0], "\r\n for <joe@example.org>; ") {
		t.Errorf("the accounts have %q and %q", p.contents(1), p.contents(4))
	}
	if err := p.store.SetDisabled(t.Context(), 4, true); err != nil {
		t.Fatal(err)
	}
	deliver("250 2.6.0") // to the other account
	if len(p.contents(1)) != 2 || len(p.contents(4)) != 1 {
		t.Errorf("with a disabled account, the accounts have %d and %d messages", len(p.contents(1)), len(p.contents(4)))
	}
	if err := p.store.SetDisabled(t.Context(), 1, true); err != nil {
		t.Fatal(err)
	}
	deliver("550 5.2.1") // RCPT remembers the address, but the accounts are checked again
	now.advance(recentFor)
	c.expect("MAIL FROM:<>", "250 ")
	c.expect("RCPT TO:<joe@example.org>", "550 5.2.1")
	c.expect("RSET", "250 ")
	if err := p.store.SetDisabled(t.Context(), 4, false); err != nil {
		t.Fatal(err)
	}
	deliver("250 2.6.0")
	if err := p.store.Remove(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	c.expect("MAIL FROM:<>", "250 ")
	c.expect("RCPT TO:<joe@example.org>", "550 5.2.1") // of the account that is left
	if _, err := p.store.Account(t.Context(), 4); !errors.Is(err, mailbox.ErrNoAccount) {
		t.Errorf("a delivery created the removed account again: %v", err)
	}
}

func TestHostileInputToMailboxesIsRefused(t *testing.T) {
	p := startPost(t, LMTP, func(o *Options) { o.MaxMessageBytes = 100_000 })
	for _, test := range []struct{ name, says, want string }{
		{"EHLO", "EHLO a", "500 5.5.1"},
		{"HELO", "HELO a", "500 5.5.1"},
		{"AUTH", "LHLO a\nAUTH PLAIN AGEAYg==", "502 5.5.1"},
		{"MAIL before LHLO", "MAIL FROM:<>", "503 5.5.1"},
		{"too large, said ahead", "LHLO a\nMAIL FROM:<> SIZE=100001", "552 5.3.4"},
		{"parameters of DSN", "LHLO a\nMAIL FROM:<> RET=FULL", "555 5.5.4"},
		{"NOTIFY", "LHLO a\nMAIL FROM:<>\nRCPT TO:<joe@example.org> NOTIFY=NEVER", "555 5.5.4"},
		{"DATA without a recipient", "LHLO a\nMAIL FROM:<>\nRCPT TO:<x@example.org>\nDATA", "503 5.5.1"},
		{"an empty recipient", "LHLO a\nMAIL FROM:<>\nRCPT TO:<>", "550 5.1.3"},
		{"a line end in an address", "LHLO a\nMAIL FROM:<>\nRCPT TO:<joe\r@example.org>", "521 5.5.2"},
		{"a header in an address", "LHLO a\nMAIL FROM:<\"x> y\"@example.org>\nRCPT TO:<joe@example.org>", "250 2.1.5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := p.call()
			c.t = t
			c.expect("", "220 ")
			says := strings.Split(test.says, "\n")
			for _, line := range says[:len(says)-1] {
				c.send(line + "\r\n")
				c.answer()
			}
			c.send(says[len(says)-1] + "\r\n")
			c.expect("", test.want)
		})
	}
	for name, test := range map[string]struct{ message, want string }{
		"bare LF":         {"Subject: x\n.\n", "521 5.5.2"},
		"bare CR":         {"Subject: x\ry\r\n.\r\n", "521 5.5.2"},
		"a long line":     {strings.Repeat("x", maxTextBytes) + "\r\n.\r\n", "500 5.5.2"},
		"a NUL character": {"Subject: x\x00\r\n.\r\n", "554 5.6.0"},
		"a large message": {strings.Repeat(strings.Repeat("x", 998)+"\r\n", 101) + ".\r\n", "552 5.3.4"},
	} {
		c := p.lhlo()
		c.expect("MAIL FROM:<>", "250 ")
		c.expect("RCPT TO:<joe@example.org>", "250 ")
		c.expect("DATA", "354 ")
		c.send(test.message)
		if got := c.answer(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s is answered %q", name, got)
		}
	}
	if n := len(p.contents(1)); n != 0 {
		t.Errorf("%d messages were stored", n)
	}
}

func TestMessagesAreSentInChunks(t *testing.T) {
	p := startPost(t, LMTP, func(o *Options) { o.MaxMessageBytes = 100_000 })
	c := p.lhlo()
	begin := func() {
		t.Helper()
		c.expect("MAIL FROM:<>", "250 ")
		c.expect("RCPT TO:<joe@example.org>", "250 ")
		c.expect("RCPT TO:<ann@example.org>", "250 ")
	}
	begin()
	c.send("BDAT 12\r\nSubject: x\r\nBDAT 6\r\n\r\n.\r\nbBDAT 3 LAST\r\nody") // pipelined, and the second chunk ends in a line
	c.expect("", "250 2.0.0 12 bytes")
	c.expect("", "250 2.0.0 6 bytes")
	c.expect("", "250 2.6.0")
	c.expect("", "250 2.6.0")
	for _, id := range []mailbox.AccountID{1, 2} {
		if all := p.contents(id); len(all) != 1 || !strings.HasSuffix(all[0], "\r\nSubject: x\r\n\r\n.\r\nbody\r\n") {
			t.Errorf("account %d has %q", id, all)
		}
	}
	// The bytes of a refused chunk are no commands.
	c.expect("BDAT 6\r\nQUIT", "503 5.5.1")
	begin()
	c.send("BDAT 4\r\nx: y")
	c.expect("", "250 2.0.0")
	c.expect("DATA", "503 5.5.1")
	c.expect("RSET", "250 2.0.0")
	c.expect("BDAT 0 LAST", "503 5.5.1")
	for body, want := range map[string]string{
		"x: y\nz: a\r\n":                      "554 5.6.0",
		"x: y\rz: a\r\n":                      "554 5.6.0",
		"x: \x00\r\n":                         "554 5.6.0",
		strings.Repeat("x", maxTextBytes):     "554 5.6.0",
		strings.Repeat("0123456\r\n", 12_000): "552 5.3.4",
	} {
		begin()
		c.send(fmt.Sprintf("BDAT %d LAST\r\n%s", len(body), body))
		c.expect("", want)
		c.expect("", want)
	}
	begin()
	large := strings.Repeat("0123456\r\n", 12_000)
	c.send(fmt.Sprintf("BDAT %d\r\n%s", len(large), large))
	c.expect("", "552 5.3.4")
	c.expect("BDAT 4 LAST\r\nab", "503 5.5.1") // with its line end, the chunk has four bytes
	if n := p.large.Load(); n != 0 {
		t.Errorf("%d bytes are claimed for large messages", n)
	}
	begin()
	c.expect("BDAT x", "501 5.5.4")
	c.ended()
	if n := len(p.contents(1)); n != 1 {
		t.Errorf("joe has %d messages", n)
	}
}

func TestStoreErrorsAreTemporary(t *testing.T) {
	var b broken
	p := startPost(t, LMTP, func(o *Options) {
		b = broken{o.Mailboxes.(*mailbox.Store), map[mailbox.AccountID]error{1: errors.New("the disk is gone")}}
		o.Mailboxes = b
	})
	c := p.lhlo()
	c.expect("MAIL FROM:<>", "250 ")
	c.expect("RCPT TO:<joe@example.org>", "250 ")
	c.expect("RCPT TO:<ann@example.org>", "250 ")
	c.expect("DATA", "354 ")
	c.send("x: y\r\n.\r\n")
	if got := c.expect("", "451 4.3.0"); strings.Contains(got, "disk") {
		t.Errorf("the reply shows an internal error: %q", got)
	}
	c.expect("", "250 2.6.0")
}

func TestLogins(t *testing.T) {
	p := startPost(t, Submission)
	c := p.greeted()
	if got := c.expect("EHLO a", "250-"); strings.Contains(got, "AUTH") || !strings.Contains(got, "250-DSN\r\n") {
		t.Errorf("without TLS the server offers %q", got)
	}
	c.expect("AUTH PLAIN "+plain("joe@example.org", p.password), "538 5.7.11")
	c.expect("MAIL FROM:<joe@example.org>", "530 5.7.0")

	c = p.secured()
	if got := c.expect("EHLO a", "250-"); !strings.Contains(got, "AUTH SCRAM-SHA-256 PLAIN\r\n") {
		t.Errorf("with TLS the server offers %q", got)
	}
	c.expect("MAIL FROM:<joe@example.org>", "530 5.7.0")
	c.expect("AUTH LOGIN", "504 5.5.4")
	c.expect("AUTH PLAIN !", "501 5.5.2")
	c.expect("AUTH PLAIN", "334 \r\n")
	c.expect("*", "501 5.5.2")
	c.expect("AUTH PLAIN "+plain("joe@example.org", "wrong"), "535 5.7.8")
	c.expect("AUTH PLAIN "+plain("nobody@example.org", p.password), "535 5.7.8")
	c.expect("AUTH PLAIN", "334 \r\n")
	c.expect(plain("joe@example.org", p.password), "235 2.7.0")
	c.expect("AUTH PLAIN "+plain("joe@example.org", p.password), "503 5.5.1")
	if got := c.expect("EHLO a", "250-"); strings.Contains(got, "AUTH") {
		t.Errorf("after the login the server offers %q", got)
	}
	if n := p.Counts().WrongLogins; n != 2 {
		t.Errorf("%d wrong logins", n)
	}
}

func TestSCRAMLogsIn(t *testing.T) {
	p := startPost(t, Submission)
	for _, initial := range []bool{true, false} {
		c := p.secured()
		client, err := scram.SHA256.NewClientUnprepped("joe@example.org", p.password, "")
		if err != nil {
			t.Fatal(err)
		}
		talk := client.NewConversation()
		step := func(challenge string) string {
			t.Helper()
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(strings.TrimPrefix(challenge, "334 "), "\r\n"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := talk.Step(string(decoded))
			if err != nil {
				t.Fatal(err)
			}
			return base64.StdEncoding.EncodeToString([]byte(response))
		}
		first := step("334 \r\n")
		if initial {
			first = c.expect("AUTH SCRAM-SHA-256 "+first, "334 ")
		} else {
			c.expect("AUTH SCRAM-SHA-256", "334 \r\n")
			first = c.expect(first, "334 ")
		}
		last := c.expect(step(first), "334 ")
		step(last)
		if !talk.Valid() {
			t.Error("the server did not prove that it knows the app password")
		}
		c.send("\r\n")
		c.expect("", "235 2.7.0")
		c.expect("MAIL FROM:<joe@example.org>", "250 2.1.0")
	}
}

func TestSubmissionSpeaksWithAnotherLibrary(t *testing.T) {
	p := startPost(t, Submission, func(o *Options) { o.ImplicitTLS = true })
	c := p.call()
	client := smtp.NewClient(tls.Client(c.Conn, p.client))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(client.Auth(sasl.NewPlainClient("", "joe@example.org", p.password)))
	must(client.Mail("joe@example.org", &smtp.MailOptions{Return: smtp.DSNReturnHeaders, EnvelopeID: "a=b"}))
	must(client.Rcpt("ann@example.org", &smtp.RcptOptions{Notify: []smtp.DSNNotify{smtp.DSNNotifySuccess}, OriginalRecipientType: smtp.DSNAddressTypeRFC822, OriginalRecipient: "ann@example.org"}))
	data, err := client.Data()
	must(err)
	_, err = fmt.Fprint(data, "From: Joe <joe@EXAMPLE.org>\r\nSubject: x\r\n\r\nbody\r\n")
	must(err)
	must(data.Close())
	must(client.Quit())
	all := p.contents(2)
	if len(all) != 1 || !strings.HasPrefix(all[0], "Return-Path: <joe@example.org>\r\nReceived: from ") || !strings.Contains(all[0], " with ESMTPSA\r\n for <ann@example.org>; ") ||
		!strings.Contains(all[0], "\r\nDate: ") || !strings.Contains(all[0], "\r\nMessage-ID: <") || !strings.HasSuffix(all[0], "\r\nbody\r\n") {
		t.Errorf("ann has %q", all)
	}
	report := p.contents(1)
	if len(report) != 1 {
		t.Fatalf("joe has %q", report)
	}
	for _, want := range []string{"Return-Path: <>\r\n", "Auto-Submitted: auto-replied\r\n", "Original-Envelope-Id: a=b\r\n", "Original-Recipient: RFC822;ann@example.org\r\n", "Final-Recipient: rfc822;ann@example.org\r\n",
		"Action: delivered\r\n", "Status: 2.0.0\r\n", "Content-Type: text/rfc822-headers\r\n\r\n", "\r\nSubject: x\r\n"} {
		if !strings.Contains(report[0], want) {
			t.Errorf("the report has no %q:\n%s", want, report[0])
		}
	}
	if strings.Contains(report[0], "body\r\n") {
		t.Error("the report has the body although RET=HDRS")
	}
}

func TestSubmissionWithTheAddressOfAnotherIsRefused(t *testing.T) {
	p := startPost(t, Submission)
	c := p.loggedIn()
	for _, from := range []string{"ann@example.org", "joe@example.com", "", "Joe@example.org"} {
		c.expect("MAIL FROM:<"+from+">", "550 5.7.1")
	}
	c.expect("MAIL FROM:<joe@example.org>", "250 2.1.0")
	c.expect("RCPT TO:<somebody@elsewhere.example.com>", "550 5.7.1")
	c.expect("RSET", "250 ")
	for header, want := range map[string]string{
		"From: joe@example.org":                                   "250 2.6.0",
		"From: Joe <joe@Example.org>, joe@example.org":            "250 2.6.0",
		"From: ann@example.org":                                   "550 5.7.1",
		"From: joe@example.org, ann@example.org":                  "550 5.7.1",
		"From: joe@example.org\r\nFrom: ann@example.org":          "554 5.6.0",
		"From: joe@example.org\r\nSender: ann@example.org":        "550 5.7.1",
		"From: ann@example.org <joe@example.org>":                 "554 5.6.0",
		"From: \"ann@example.org\" <joe@example.org>":             "250 2.6.0",
		"From: group: joe@example.org;":                           "550 5.7.1",
		"From:":                                                   "554 5.6.0",
		"Subject: no sender":                                      "554 5.6.0",
		"From : ann@example.org\r\nFrom: joe@example.org":         "554 5.6.0",
		"From: joe@example.org\r\n <ann@example.org>":             "554 5.6.0",
		"from: joe@example.org (ann@example.org)\r\nX: From: x@y": "250 2.6.0",
		"\r\nFrom: joe@example.org":                               "554 5.6.0",
	} {
		c = p.loggedIn()
		c.expect("MAIL FROM:<joe@example.org>", "250 2.1.0")
		c.expect("RCPT TO:<ann@example.org>", "250 2.1.5")
		c.expect("DATA", "354 ")
		c.send(header + "\r\n\r\nbody\r\n.\r\n")
		if got := c.answer(); !strings.HasPrefix(got, want) {
			t.Errorf("%q is answered %q, want %q", header, got, want)
		}
	}
	if n := len(p.contents(2)); n != 4 {
		t.Errorf("ann has %d messages, want 4", n)
	}
}

func TestFailuresOfSomeRecipientsAreReported(t *testing.T) {
	var b broken
	p := startPost(t, Submission, func(o *Options) {
		b = broken{o.Mailboxes.(*mailbox.Store), map[mailbox.AccountID]error{2: errors.New("the disk is gone")}}
		o.Mailboxes = b
	})
	submit := func(params string, to ...string) string {
		t.Helper()
		c := p.loggedIn()
		c.expect("MAIL FROM:<joe@example.org>", "250 2.1.0")
		for _, one := range to {
			c.expect("RCPT TO:<"+one+"@example.org>"+params, "250 2.1.5")
		}
		c.expect("DATA", "354 ")
		c.send("From: joe@example.org\r\nSubject: x\r\n\r\nbody\r\n.\r\n")
		return c.answer()
	}
	if got := submit("", "ann"); !strings.HasPrefix(got, "451 4.3.0") {
		t.Errorf("a message without a success is answered %q", got)
	}
	if got := submit(" NOTIFY=NEVER", "joe", "ann"); !strings.HasPrefix(got, "250 2.6.0") || len(p.contents(1)) != 1 {
		t.Errorf("NOTIFY=NEVER is answered %q, and joe has %q", got, p.contents(1))
	}
	if got := submit(" NOTIFY=FAILURE,DELAY", "joe", "ann"); !strings.HasPrefix(got, "250 2.6.0") {
		t.Errorf("a message with a failure is answered %q", got)
	}
	all := p.contents(1)
	if len(all) != 3 {
		t.Fatalf("joe has %q", all)
	}
	reports := bounce.Parse([]byte(all[2])) // another parser understands it
	if len(reports) != 1 || reports[0].Recipient != "ann@example.org" || !strings.Contains(all[2], "Status: 5.3.0\r\n") || !strings.Contains(all[2], "Content-Type: message/rfc822\r\n\r\nDate: ") {
		t.Errorf("the report %q is understood as %+v", all[2], reports)
	}
	b.errs[1] = errors.New("the disk is gone")
	if got := submit("", "full", "ann"); !strings.HasPrefix(got, "451 4.3.0") {
		t.Errorf("a failure that cannot be reported is answered %q", got)
	}
}

func TestMalformedDSNParametersAreRefused(t *testing.T) {
	p := startPost(t, Submission)
	for _, params := range []string{"RET=X", "ENVID=", "ENVID=a+0Ab", "ENVID=a=b", "ENVID=" + strings.Repeat("a", 101), "SIZE=x", "NOTIFY=NEVER"} {
		c := p.loggedIn()
		if got := c.expect("MAIL FROM:<joe@example.org> "+params, "5"); !strings.HasPrefix(got, "501 5.5.4") && !strings.HasPrefix(got, "555 5.5.4") {
			t.Errorf("%s is answered %q", params, got)
		}
	}
	c := p.loggedIn()
	c.expect("MAIL FROM:<joe@example.org> RET=HDRS ENVID=a+2Bb", "250 ")
	for _, params := range []string{"NOTIFY=", "NOTIFY=NEVER,SUCCESS", "NOTIFY=X", "ORCPT=rfc822", "ORCPT=;a", "ORCPT=rfc822;", "ORCPT=rfc822;a+0D+0Ab", "ORCPT=a:b;c"} {
		if got := c.expect("RCPT TO:<ann@example.org> "+params, "501 5.5.4"); got == "" {
			t.Errorf("%s is answered %q", params, got)
		}
	}
	c.expect("RCPT TO:<ann@example.org> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;ann+2Bx@example.org", "250 ")
}

func FuzzMailboxSession(f *testing.F) {
	for _, kind := range []Kind{LMTP, Submission} {
		for _, text := range []string{"LHLO a\r\nMAIL FROM:<>\r\nRCPT TO:<joe@example.org>\r\nDATA\r\n", "x: y\r\n.\r\n", "EHLO a\r\nAUTH PLAIN\r\n", "AUTH SCRAM-SHA-256 biwsbj1q\r\n", "MAIL FROM:<joe@example.org> RET=HDRS ENVID=x\r\n",
			"BDAT 4\r\nx: yBDAT 2 LAST\r\n\r\n", "RCPT TO:<ann@example.org> NOTIFY=SUCCESS ORCPT=rfc822;a\r\n", "DATA\r\nFrom: joe@example.org\r\n\r\n.\r\n"} {
			f.Add(uint8(kind), text)
		}
	}
	p := startPost(f, LMTP)
	f.Fuzz(func(t *testing.T, kind uint8, text string) {
		o := p.options
		o.Kind = LMTP
		said := []string{"LHLO peer.example.com\r\n", "MAIL FROM:<>\r\n", "RCPT TO:<full@example.org>\r\n"}
		if kind%2 == 1 {
			o.Kind, said = Submission, []string{"EHLO peer.example.com\r\n"}
		}
		s := newServer(o)
		var spoken turns
		for _, line := range append(said, strings.SplitAfter(text, "\r\n")...) {
			spoken = append(spoken, strings.NewReader(line))
		}
		peer := &script{in: &spoken}
		one := newSession(s, peer)
		if o.Kind == Submission {
			one.secure = true
			if kind%4 == 3 {
				one.account = &mailbox.Account{Owner: mailbox.Owner{ID: 1, Address: "joe@example.org"}}
			}
		}
		one.run()
		if s.counters.panics.Load() > 0 {
			t.Fatal("it panicked")
		}
		for line := range strings.SplitAfterSeq(peer.answers.String(), "\r\n") {
			if line != "" && (len(line) < 6 || !strings.HasSuffix(line, "\r\n") || line[3] != ' ' && line[3] != '-' || strings.ContainsAny(line[:len(line)-2], "\r\n")) {
				t.Fatalf("not an answer: %q", line)
			}
		}
	})
}
