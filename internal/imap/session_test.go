package imap_test

import (
	"bufio"
	"compress/flate"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdg-go/scram"

	"fanfare.dev/fanfare/internal/imap"
	"fanfare.dev/fanfare/internal/mailbox"
)

// certificate returns TLS settings for 127.0.0.1, for the server and for a client that trusts it.
func certificate(t testing.TB) (server, forClient *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "127.0.0.1"}
}

// secure starts TLS on a connection.
func (c *client) secure(with *tls.Config) {
	c.t.Helper()
	conn := tls.Client(c.conn, with)
	must(c.t, conn.HandshakeContext(c.t.Context()))
	c.conn, c.in = conn, bufio.NewReader(conn)
}

func (c *client) refused(code, format string, args ...any) {
	c.t.Helper()
	if _, answer := c.command(format, args...); !strings.HasPrefix(answer, code) {
		c.t.Errorf("%s: %q, want %s", fmt.Sprintf(format, args...), answer, code)
	}
}

// ended reports the rest of the responses until the server closes the connection.
func (c *client) ended() (rest []string) {
	c.t.Helper()
	for {
		line, err := c.next()
		if err != nil {
			if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
				c.t.Fatal("the server does not close the connection")
			}
			return rest
		}
		rest = append(rest, line)
	}
}

func TestLoginsNeedTLS(t *testing.T) {
	server, forClient := certificate(t)
	w := newWorld(t, func(o *imap.Options) { o.TrustsNetwork, o.TLS = nil, server })
	c := w.dial()
	if untagged, _ := c.ok("CAPABILITY"); !strings.Contains(untagged[0], " LOGINDISABLED") || !strings.Contains(untagged[0], " STARTTLS") || strings.Contains(untagged[0], "AUTH=") {
		t.Errorf("capabilities before TLS: %s", untagged)
	}
	c.refused("NO [PRIVACYREQUIRED]", "LOGIN %s %q", address(1), w.password)
	c.refused("NO [PRIVACYREQUIRED]", "AUTHENTICATE PLAIN AGEAYg==")
	c.ok("STARTTLS")
	c.secure(forClient)
	if untagged, _ := c.ok("CAPABILITY"); strings.Contains(untagged[0], "LOGINDISABLED") || strings.Contains(untagged[0], "STARTTLS") || !strings.Contains(untagged[0], " AUTH=PLAIN") {
		t.Errorf("capabilities with TLS: %s", untagged)
	}
	c.refused("BAD", "STARTTLS")
	c.ok("LOGIN %s %q", address(1), w.password)
	c.ok("SELECT INBOX")
}

func TestCommandsBehindStartTLSAreDropped(t *testing.T) {
	server, _ := certificate(t)
	w := newWorld(t, func(o *imap.Options) { o.TLS = server })
	c := w.dial()
	c.send("a STARTTLS\r\nb NOOP\r\n")
	rest := c.ended()
	if len(rest) == 0 || !strings.HasPrefix(rest[0], "a BAD") || slices.ContainsFunc(rest, func(s string) bool { return strings.HasPrefix(s, "b ") }) {
		t.Errorf("responses %q", rest)
	}
}

func TestAuthenticatePlainLogsIn(t *testing.T) {
	w := newWorld(t, nil)
	good := base64.StdEncoding.EncodeToString([]byte("\x00" + address(1) + "\x00" + w.password))
	c := w.dial()
	c.ok("AUTHENTICATE PLAIN %s", good)
	c.ok("SELECT INBOX")
	c.refused("BAD", "AUTHENTICATE PLAIN %s", good)

	c = w.dial()
	c.send("a AUTHENTICATE PLAIN\r\n")
	if line := c.line(); line != "+ " {
		t.Fatalf("continuation %q", line)
	}
	c.send(good + "\r\n")
	if line := c.line(); !strings.HasPrefix(line, "a OK [CAPABILITY ") {
		t.Fatalf("answer %q", line)
	}
	c = w.dial()
	c.send("a AUTHENTICATE PLAIN\r\n")
	c.line()
	c.send("*\r\n")
	if line := c.line(); !strings.HasPrefix(line, "a BAD") {
		t.Errorf("a cancelled authentication is answered with %q", line)
	}
	c.refused("NO [AUTHORIZATIONFAILED]", "AUTHENTICATE PLAIN %s", base64.StdEncoding.EncodeToString([]byte(address(2)+"\x00"+address(1)+"\x00"+w.password)))
	c.refused("NO [CANNOT]", "AUTHENTICATE GSSAPI")
	c.refused("BAD", "AUTHENTICATE PLAIN %s", base64.StdEncoding.EncodeToString([]byte("x")))
}

func TestSCRAMLogsInAndProvesTheServer(t *testing.T) {
	w := newWorld(t, nil)
	for _, initial := range []bool{true, false} {
		user, err := scram.SHA256.NewClientUnprepped(address(1), w.password, "")
		must(t, err)
		talk := user.NewConversation()
		first, err := talk.Step("")
		must(t, err)
		c := w.dial()
		encoded := base64.StdEncoding.EncodeToString([]byte(first))
		if initial {
			c.send("a AUTHENTICATE SCRAM-SHA-256 " + encoded + "\r\n")
		} else {
			c.send("a AUTHENTICATE SCRAM-SHA-256\r\n")
			c.line()
			c.send(encoded + "\r\n")
		}
		for !talk.Done() {
			challenge, isChallenge := strings.CutPrefix(c.line(), "+ ")
			if !isChallenge {
				t.Fatal("no challenge")
			}
			decoded, err := base64.StdEncoding.DecodeString(challenge)
			must(t, err)
			response, err := talk.Step(string(decoded))
			must(t, err)
			c.send(base64.StdEncoding.EncodeToString([]byte(response)) + "\r\n")
		}
		if answer := c.line(); !talk.Valid() || !strings.HasPrefix(answer, "a OK [CAPABILITY ") {
			t.Errorf("valid %v, %q", talk.Valid(), answer)
		}
		c.ok("SELECT INBOX")
	}
}

func TestGuessedPasswordsEndTheConnection(t *testing.T) {
	w := newWorld(t, func(o *imap.Options) { o.Limits.FailureDelay = time.Millisecond })
	c := w.dial()
	for range 4 {
		c.refused("NO [AUTHENTICATIONFAILED]", "LOGIN %s guess", address(1))
	}
	c.send("z LOGIN x y\r\n")
	if rest := c.ended(); len(rest) != 2 || !strings.HasPrefix(rest[0], "* BYE") || !strings.HasPrefix(rest[1], "z NO [AUTHENTICATIONFAILED]") {
		t.Errorf("responses %q", rest)
	}
}

func TestNothingButALoginIsPossibleBeforeTheLogin(t *testing.T) {
	w := newWorld(t, nil)
	for _, command := range []string{"SELECT INBOX", "LIST \"\" *", "APPEND INBOX {=x=}", "IDLE", "FETCH 1 FLAGS", "ENABLE CONDSTORE", "COMPRESS DEFLATE", "GETQUOTA \"\""} {
		w.dial().refused("BAD", "%s", command)
	}
	c := w.dial()
	c.ok("NOOP")
	c.ok("ID NIL")
	c.send("a LOGIN {5000}\r\n")
	if line := c.line(); !strings.HasPrefix(line, "a BAD") {
		t.Errorf("a large literal before the login: %q", line)
	}
	c.send("b APPEND INBOX {5000+}\r\n" + strings.Repeat("x", 5000) + "\r\n")
	if line := c.line(); !strings.HasPrefix(line, "b BAD") {
		t.Errorf("a large literal before the login: %q", line)
	}
	c.send("c LOGIN " + strings.Repeat("x", 10_000) + "\r\n")
	if rest := c.ended(); len(rest) != 2 || !strings.HasPrefix(rest[0], "* BAD") || !strings.HasPrefix(rest[1], "* BYE") {
		t.Errorf("a long line before the login: %q", rest)
	}
}

func TestLargeLiteralsAreRefused(t *testing.T) {
	w := newWorld(t, func(o *imap.Options) { o.Limits.MaxMessageBytes = 100_000 })
	c := w.login(1)
	c.send("a APPEND INBOX {100001+}\r\n" + strings.Repeat("x", 100_001) + " (\\Seen)\r\nb NOOP\r\n")
	if first, second := c.line(), c.line(); !strings.HasPrefix(first, "a NO [TOOBIG]") || !strings.HasPrefix(second, "b OK") {
		t.Errorf("%q, %q", first, second)
	}
	c.ok("APPEND INBOX {=%s=}", strings.Repeat("x", 100_000))
	c.send("c SEARCH TEXT {70000}\r\n")
	if line := c.line(); !strings.HasPrefix(line, "c BAD") {
		t.Errorf("%q", line)
	}
	c.send("d APPEND INBOX {9000000000+}\r\n")
	if rest := c.ended(); len(rest) != 1 || !strings.HasPrefix(rest[0], "* BYE [TOOBIG]") {
		t.Errorf("%q", rest)
	}
}

func TestManyInvalidCommandsEndTheConnection(t *testing.T) {
	w := newWorld(t, nil)
	c := w.login(1)
	for range 19 {
		c.refused("BAD", "NONSENSE")
	}
	c.ok("NOOP") // counts from the beginning
	for range 19 {
		c.refused("BAD", "FETCH 1 FLAGS")
	}
	c.send("z NONSENSE\r\n")
	if rest := c.ended(); len(rest) != 2 || !strings.HasPrefix(rest[1], "* BYE") {
		t.Errorf("responses %q", rest)
	}
}

func TestIdleReportsChangesOfOtherSessions(t *testing.T) {
	w := newWorld(t, nil)
	idle, other := w.login(1), w.login(1)
	idle.ok("SELECT INBOX")
	other.ok("SELECT INBOX")
	idle.send("i IDLE\r\n")
	if line := idle.line(); !strings.HasPrefix(line, "+ ") {
		t.Fatalf("%q", line)
	}
	until := func(want string) {
		t.Helper()
		for line := idle.line(); !strings.HasPrefix(line, want); line = idle.line() {
			if !strings.HasSuffix(line, " RECENT") && !strings.Contains(line, "FETCH (FLAGS (") {
				t.Errorf("got %q before %q", line, want)
			}
		}
	}
	other.ok("APPEND INBOX {=Subject: one\\r\\n\\r\\n1=}")
	until("* 1 EXISTS")
	other.ok("STORE 1 +FLAGS (\\Flagged)")
	until("* 1 FETCH (FLAGS (\\Flagged")
	errs := w.store.Deliver(t.Context(), mailbox.Delivery{Content: []byte("Subject: two\r\n\r\n2"), To: []mailbox.Owner{{ID: 1, Service: "press", Address: address(1)}}})
	must(t, errs[0])
	until("* 2 EXISTS")
	other.ok("STORE 1 +FLAGS.SILENT (\\Deleted)")
	other.ok("EXPUNGE")
	until("* 1 EXPUNGE")
	idle.send("done\r\n")
	for line := idle.line(); ; line = idle.line() {
		if rest, is := strings.CutPrefix(line, "i "); is {
			if !strings.HasPrefix(rest, "OK") {
				t.Errorf("IDLE ends with %q", rest)
			}
			break
		}
	}
	if untagged, _ := idle.ok("FETCH 1 UID"); len(untagged) != 1 || untagged[0] != "* 1 FETCH (UID 2)" {
		t.Errorf("after IDLE: %q", untagged)
	}
	idle.send("j IDLE\r\n")
	idle.line()
	idle.send("NOOP\r\n")
	if line := idle.line(); !strings.HasPrefix(line, "j BAD") {
		t.Errorf("IDLE without DONE ends with %q", line)
	}
}

func TestADeletedMailboxEndsTheSessionsThatHaveIt(t *testing.T) {
	w := newWorld(t, nil)
	waiting, idle, other := w.login(1), w.login(1), w.login(1)
	other.ok("CREATE Gone")
	waiting.ok("SELECT Gone")
	idle.ok("SELECT Gone")
	idle.send("i IDLE\r\n")
	idle.line()
	other.ok("DELETE Gone")
	if rest := idle.ended(); len(rest) != 1 || !strings.HasPrefix(rest[0], "* BYE") {
		t.Errorf("during IDLE: %q", rest)
	}
	waiting.send("a NOOP\r\n")
	if rest := waiting.ended(); len(rest) != 2 || !strings.HasPrefix(rest[0], "* BYE") {
		t.Errorf("at the next command: %q", rest)
	}
}

func TestPipelinedCommandsAreAnsweredInOrder(t *testing.T) {
	w := newWorld(t, nil)
	c := w.login(1)
	var all strings.Builder
	for i := range 200 {
		fmt.Fprintf(&all, "p%d APPEND INBOX {10+}\r\nSubject: x\r\nq%d STATUS INBOX (MESSAGES)\r\n", i, i)
	}
	go c.send(all.String())
	for i := range 200 {
		if line := c.line(); !strings.HasPrefix(line, fmt.Sprintf("p%d OK", i)) {
			t.Fatalf("%q", line)
		}
		if line := c.line(); line != fmt.Sprintf("* STATUS INBOX (MESSAGES %d)", i+1) {
			t.Fatalf("%q", line)
		}
		c.line()
	}
}

func TestLiteralsWaitForAContinuation(t *testing.T) {
	w := newWorld(t, nil)
	c := w.dial()
	c.send(fmt.Sprintf("a LOGIN {%d}\r\n", len(address(1))))
	if line := c.line(); !strings.HasPrefix(line, "+ ") {
		t.Fatalf("%q", line)
	}
	c.send(fmt.Sprintf("%s {%d}\r\n", address(1), len(w.password)))
	if line := c.line(); !strings.HasPrefix(line, "+ ") {
		t.Fatalf("%q", line)
	}
	c.send(w.password + "\r\n")
	if line := c.line(); !strings.HasPrefix(line, "a OK") {
		t.Fatalf("%q", line)
	}
}

func TestCompressionWorksInBothDirections(t *testing.T) {
	w := newWorld(t, nil)
	c := w.login(1)
	c.refused("NO [CANNOT]", "COMPRESS LZ4")
	c.ok("COMPRESS DEFLATE")
	out, err := flate.NewWriter(c.conn, flate.DefaultCompression)
	must(t, err)
	c.conn = compressed{c.conn, out}
	c.in = bufio.NewReader(flate.NewReader(c.in))
	text := strings.Repeat("The same line again and again.\r\n", 3000)
	c.ok("APPEND INBOX {=%s=}", text)
	c.ok("SELECT INBOX")
	for range 3 {
		untagged, _ := c.ok("FETCH 1 BODY.PEEK[]")
		if !strings.Contains(untagged[0], text) {
			t.Error("the message differs")
		}
	}
	c.refused("NO [COMPRESSIONACTIVE]", "COMPRESS DEFLATE")
}

// compressed is a connection that compresses each write.
type compressed struct {
	net.Conn
	out *flate.Writer
}

func (c compressed) Write(p []byte) (int, error) {
	if _, err := c.out.Write(p); err != nil {
		return 0, err
	}
	return len(p), c.out.Flush()
}

func TestAccountsAreSeparate(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.login(1), w.login(2)
	a.ok("APPEND INBOX {=Subject: secret\\r\\n\\r\\n1=}")
	a.ok("CREATE Private")
	b.ok("SELECT INBOX")
	if untagged, _ := b.ok("UID SEARCH ALL"); untagged[0] != "* SEARCH" {
		t.Errorf("account 2 finds %q", untagged)
	}
	b.refused("NO [NONEXISTENT]", "SELECT Private")
	b.refused("BAD", "FETCH 1 BODY[]")
}

func TestConnectionsAreLimited(t *testing.T) {
	server, secured := certificate(t)
	w := newWorld(t, func(o *imap.Options) {
		o.TLS, o.TrustsNetwork, o.Limits.UnauthenticatedPerNet, o.Limits.ConnectionsPerAccount = server, nil, 3, 4
	})
	dial := func() *client {
		c := w.dial()
		c.ok("STARTTLS")
		c.secure(secured)
		return c
	}
	var open []*client
	for range 3 {
		open = append(open, dial())
	}
	refusedConn, err := net.Dial("tcp", w.addr)
	must(t, err)
	defer refusedConn.Close()
	_ = refusedConn.SetReadDeadline(time.Now().Add(patience))
	if text, err := io.ReadAll(refusedConn); err != nil || !strings.HasPrefix(string(text), "* BYE [UNAVAILABLE]") {
		t.Errorf("the fourth connection before a login gets %q, %v", text, err)
	}
	for _, c := range open {
		c.ok("LOGIN %s %q", address(1), w.password)
	}
	dial().ok("LOGIN %s %q", address(1), w.password)
	dial().refused("NO [LIMIT]", "LOGIN %s %q", address(1), w.password)
	dial().ok("LOGIN %s %q", address(2), w.password)
	open[0].ok("LOGOUT")
	eventually(t, "a place for another connection", func() bool {
		c := dial()
		_, answer := c.command("LOGIN %s %q", address(1), w.password)
		c.ok("LOGOUT")
		c.ended()
		return strings.HasPrefix(answer, "OK")
	})
}

func TestALoginHasATimeLimit(t *testing.T) {
	w := newWorld(t, func(o *imap.Options) { o.Limits.LoginTimeout = 50 * time.Millisecond })
	c := w.dial()
	if rest := c.ended(); len(rest) != 1 || !strings.HasPrefix(rest[0], "* BYE") {
		t.Errorf("responses %q", rest)
	}
}

func TestAServerThatStopsSaysBye(t *testing.T) {
	var server *imap.Server
	w := newWorld(t, nil)
	o := imap.Options{Name: "mail.example.org", Store: w.store, Login: w.logins, Clock: w.clock, Logger: nil, TrustsNetwork: netip.Addr.IsLoopback}
	server = imap.New(o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.addr = l.Addr().String()
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(l) }()
	waiting, idle := w.login(1), w.login(1)
	idle.send("i IDLE\r\n")
	idle.line()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server.Close(ctx)
	<-served
	for name, c := range map[string]*client{"waiting": waiting, "idle": idle} {
		if rest := c.ended(); len(rest) != 1 || !strings.HasPrefix(rest[0], "* BYE [UNAVAILABLE]") {
			t.Errorf("%s: %q", name, rest)
		}
	}
	server.Close(ctx)
}

func TestMemoryForLargeMessagesIsShared(t *testing.T) {
	w := newWorld(t, func(o *imap.Options) { o.Limits.LargeMessageBytes = 200_000 })
	text := strings.Repeat("x", 150_000)
	clients := make([]*client, 4)
	for i := range clients {
		clients[i] = w.login(1)
	}
	var running sync.WaitGroup
	for _, c := range clients {
		running.Go(func() {
			for range 5 {
				c.ok("APPEND INBOX {=%s=}", text)
			}
			c.ok("SELECT INBOX")
			untagged, _ := c.ok("FETCH 1:3 (BODY.PEEK[] UID)")
			for i, line := range untagged[:3] {
				if want := fmt.Sprintf("* %d FETCH (BODY[] {150000}\r\n%s UID %d)", i+1, text, i+1); line != want {
					t.Errorf("message %d: %d bytes, want %d", i+1, len(line), len(want))
				}
			}
			c.ok("SEARCH 1:3 TEXT y")
		})
	}
	running.Wait()
	clients[0].refused("NO [UNAVAILABLE]", "APPEND INBOX {=%s=} {=%s=}", text, text)
	clients[0].ok("APPEND INBOX {=%s=} {=small=}", text)
}

// A change of flags is reported with the UID after QRESYNC or IMAP4rev2 was enabled, and with MODSEQ after a command that enables CONDSTORE,
// which can fail (RFC 7162, section 3.1).
func TestAFetchReportsTheFlagsThatItChanges(t *testing.T) {
	for _, test := range []struct{ enabling, want string }{
		{"NOOP", `(BODY[] {1}\r\nx FLAGS (\Seen \Recent))`},
		{"SELECT missing (CONDSTORE)", `(BODY[] {1}\r\nx FLAGS (\Seen \Recent) MODSEQ (N))`},
		{"ENABLE QRESYNC", `(BODY[] {1}\r\nx UID 1 FLAGS (\Seen \Recent) MODSEQ (N))`},
		{"ENABLE IMAP4rev2", `(BODY[] {1}\r\nx UID 1 FLAGS (\Seen))`},
	} {
		c := newWorld(t, nil).login(1)
		c.ok("APPEND INBOX {=x=}")
		c.command("%s", test.enabling)
		c.ok("SELECT INBOX")
		untagged, _ := c.ok("FETCH 1 BODY[]")
		got := regexp.MustCompile(`MODSEQ \(\d+\)`).ReplaceAllString(untagged[0], "MODSEQ (N)")
		if want := "* 1 FETCH " + strings.ReplaceAll(test.want, `\r\n`, "\r\n"); got != want {
			t.Errorf("after %s: %q, want %q", test.enabling, got, want)
		}
	}
}

func TestBytesOfMessagesAreReturnedUnchanged(t *testing.T) {
	w := newWorld(t, nil)
	c := w.login(1)
	var message strings.Builder
	message.WriteString("Subject: x\r\n\r\n")
	for i := range 200_000 {
		message.WriteByte(byte(1 + i%9))
		if i%70 == 0 {
			message.WriteString("\xc3\xa4\xff{12}\r\n")
		}
	}
	c.ok("APPEND INBOX {=%s=}", message.String())
	c.ok("SELECT INBOX")
	untagged, _ := c.ok("FETCH 1 BODY.PEEK[]")
	want := fmt.Sprintf("* 1 FETCH (BODY[] {%d}\r\n%s)", message.Len(), message.String())
	if untagged[0] != want {
		t.Error("the message differs")
	}
	c.ok("APPEND INBOX ~{5+}\r\na\x00b\r\n")
	if untagged, _ := c.ok("FETCH 2 (BODY.PEEK[] BINARY.PEEK[])"); untagged[0] != "* 2 FETCH (BODY[] {5}\r\na\x80b\r\n BINARY[] ~{5}\r\na\x00b\r\n)" {
		t.Errorf("binary: %q", untagged)
	}
	c.refused("BAD", "APPEND INBOX {3+}\r\na\x00b")
}

// The client remembers the last FLAGS response (RFC 9051, section 7.3.5), so a keyword that it does not have is listed again.
func TestAKeywordThatReturnsIsListedAgain(t *testing.T) {
	w := newWorld(t, nil)
	c := w.login(1)
	c.ok("APPEND INBOX (first) {=a: b\\r\\n\\r\\n=}")
	c.ok("SELECT INBOX")
	for _, word := range []string{"second", "first"} {
		untagged, _ := c.ok("STORE 1 FLAGS (%s)", word)
		if want := `* FLAGS (\Answered \Flagged \Deleted \Seen \Draft ` + word + ")"; !slices.Contains(untagged, want) {
			t.Errorf("responses %q, want %s", untagged, want)
		}
	}
}
