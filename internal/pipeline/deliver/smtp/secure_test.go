package smtp

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/sink"
)

// A relay is an independent server (emersion/go-smtp) that stores mail.
type relay struct {
	mu   sync.Mutex
	mail map[string]string // recipient: body
	user string
}

type relaySession struct {
	r  *relay
	to string
}

func (r *relay) NewSession(*gosmtp.Conn) (gosmtp.Session, error) { return &relaySession{r: r}, nil }

func (s *relaySession) AuthMechanisms() []string { return []string{sasl.Plain} }
func (s *relaySession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != "open sesame" {
			return errors.New("no")
		}
		s.r.mu.Lock()
		s.r.user = user
		s.r.mu.Unlock()
		return nil
	}), nil
}
func (s *relaySession) Mail(string, *gosmtp.MailOptions) error { return nil }
func (s *relaySession) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	if strings.HasPrefix(to, "r3@") {
		return &gosmtp.SMTPError{Code: 550, EnhancedCode: gosmtp.EnhancedCode{5, 1, 1}, Message: "no such person"}
	}
	s.to = to
	return nil
}
func (s *relaySession) Data(r io.Reader) error {
	body, err := io.ReadAll(r)
	s.r.mu.Lock()
	s.r.mail[s.to] = string(body)
	s.r.mu.Unlock()
	return err
}
func (s *relaySession) Reset()        {}
func (s *relaySession) Logout() error { return nil }

func startRelay(t *testing.T, security *tls.Config, implicit bool) (*relay, string) {
	t.Helper()
	r := &relay{mail: map[string]string{}}
	srv := gosmtp.NewServer(r)
	srv.Domain = "relay.test"
	srv.EnableSMTPUTF8 = true
	srv.TLSConfig = security
	srv.AllowInsecureAuth = true
	srv.ErrorLog = quiet{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if implicit {
		l = tls.NewListener(l, security)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return r, l.Addr().String()
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

func TestGoSMTPServerGetsEveryMessageUnchanged(t *testing.T) {
	security, pool, err := sink.SelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	trust := &tls.Config{RootCAs: pool}
	for name, c := range map[string]Config{
		"plain":                    {},
		"pipelining":               {Grouping: "pipelining"},
		"lock step":                {Grouping: "lockstep"},
		"opportunistic":            {TLS: TLSOpportunistic},
		"required":                 {TLS: TLSRequired, TLSConfig: trust},
		"required, with a login":   {TLS: TLSRequired, TLSConfig: trust, Username: "fanfare", Password: "open sesame"},
		"implicit":                 {TLS: TLSImplicit, TLSConfig: trust},
		"login on the own machine": {Username: "fanfare", Password: "open sesame"},
	} {
		t.Run(name, func(t *testing.T) {
			r, addr := startRelay(t, security, c.TLS == TLSImplicit)
			cfg := patient(addr)
			cfg.TLS, cfg.TLSConfig, cfg.Grouping, cfg.Username, cfg.Password = c.TLS, c.TLSConfig, c.Grouping, c.Username, c.Password
			all := messages(6)
			queue := newQueue(t, slices.Clone(all)...)
			if err := New(cfg).Serve(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			queue.done()
			for i, got := range queue.tells(all) {
				want, body := "taken 250", string(all[i].Body)+string(all[i].Attachments)
				if i == 3 {
					want, body = "permanent 550", ""
				}
				if got != want || r.mail[all[i].To] != body {
					t.Errorf("message %d: %s %q", i, got, r.mail[all[i].To])
				}
			}
			if r.user != c.Username {
				t.Errorf("logged in as %q", r.user)
			}
		})
	}
}

func TestInsecureSessionIsNotOpened(t *testing.T) {
	security, _, err := sink.SelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"unknown authority":           {Config{TLS: TLSRequired}, "certificate"},
		"password under unknown cert": {Config{TLS: TLSOpportunistic, Username: "u", Password: "open sesame"}, "certificate"},
		"wrong password":              {Config{Username: "u", Password: "wrong"}, "reply to AUTH PLAIN: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, addr := startRelay(t, security, false)
			cfg := patient(addr)
			cfg.TLS, cfg.Username, cfg.Password = c.cfg.TLS, c.cfg.Username, c.cfg.Password
			all := messages(1)
			queue := newQueue(t, slices.Clone(all)...)
			err := New(cfg).Serve(t.Context(), queue)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sesame") {
				t.Errorf("err %v", err)
			}
			queue.done()
			wantAll(t, queue, all, "waiting")
		})
	}
	t.Run("no STARTTLS where it is required", func(t *testing.T) {
		p := startPeer(t, nil)
		cfg := patient(p.addr)
		cfg.TLS = TLSRequired
		if err := New(cfg).Serve(t.Context(), newQueue(t, messages(1)...)); err == nil || !strings.Contains(err.Error(), "STARTTLS") {
			t.Errorf("err %v", err)
		}
	})
}

// CVE-2011-0411: plain text after the reply to STARTTLS must not be read as if it was sent
// inside TLS.
func TestPlainTextBehindSTARTTLSEndsTheSession(t *testing.T) {
	p := startPeer(t, func(now exchange) string {
		if now.at == "STARTTLS" {
			return "220 go ahead\r\n250-injected\r\n250 AUTH LOGIN"
		}
		return standard
	}, "STARTTLS", "PIPELINING")
	cfg := patient(p.addr)
	cfg.TLS = TLSRequired
	err := New(cfg).Serve(t.Context(), newQueue(t, messages(1)...))
	if err == nil || !strings.Contains(err.Error(), "plain text") {
		t.Errorf("err %v", err)
	}
}

func TestRelayWithoutPlainGetsAUTHLOGIN(t *testing.T) {
	var said []string
	p := startPeer(t, func(now exchange) string {
		switch now.at {
		case "AUTH":
			said = append(said, now.line)
			return "334 VXNlcm5hbWU6"
		case base64.StdEncoding.EncodeToString([]byte("me")):
			said = append(said, "me")
			return "334 UGFzc3dvcmQ6"
		case base64.StdEncoding.EncodeToString([]byte("secret")):
			said = append(said, "secret")
			return "235 2.7.0 welcome"
		}
		return standard
	}, "PIPELINING", "AUTH LOGIN XOTHER")
	cfg := patient(p.addr)
	cfg.Username, cfg.Password = "me", "secret"
	all := messages(2)
	_, queue := serveAll(t, cfg, p, all)
	wantAll(t, queue, all, "taken 250")
	if !slices.Equal(said, []string{"AUTH LOGIN", "me", "secret"}) {
		t.Error(said)
	}
}

func TestPasswordIsNotSentWithoutTLS(t *testing.T) {
	c := &conn{rw: &deadlineConn{}, socket: &deadlineConn{Conn: farAway{}}}
	d := New(Config{Address: "mail.example.com:25", Username: "u", Password: "p"})
	if err := d.authenticate(c); err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("err %v", err)
	}
}

type farAway struct{ net.Conn }

func (farAway) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 25} }

func TestTheSinkGetsEveryMessageOnce(t *testing.T) {
	security, pool, err := sink.SelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"grouped": {}, "pipelining": {Grouping: "pipelining"}, "lock step": {Grouping: "lockstep"},
		"TLS": {TLS: TLSRequired, TLSConfig: &tls.Config{RootCAs: pool}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sink.New(sink.Config{TLS: security, KeepFirst: 1})
			addr, err := s.Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- s.Serve() }()
			body := []byte("X-Fanfare-Event: evt-1\r\n\r\n.\r\n..\r\nend without a line end")
			stats, err := Blaster{cfg}.Blast(t.Context(), addr.String(), 4, 500, func(i int) (string, string, []byte) {
				return "s@example.com", "r" + string(rune('a'+i%26)) + strings.Repeat("x", i/26) + "@example.com", body
			})
			if err != nil || stats.Accepted != 500 {
				t.Errorf("%+v, %v", stats, err)
			}
			_ = s.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if got := s.Stats(); got.Unique != 500 || got.Duplicates != 0 || got.Messages != 500 {
				t.Errorf("%+v", got)
			}
			if kept := s.Messages(); len(kept) != 1 || !bytes.Equal(kept[0].Body, append(slices.Clone(body), "\r\n"...)) {
				t.Errorf("%q", kept)
			}
		})
	}
}

func TestBlastCountsRefusals(t *testing.T) {
	p := startPeer(t, func(now exchange) string {
		switch {
		case now.at == atRcpt && strings.Contains(now.line, "<4"):
			return "450 later"
		case now.at == atRcpt && strings.Contains(now.line, "<5"):
			return "550 no"
		case now.at == atBody && strings.Contains(now.line, "break"):
			return hangUp
		}
		return standard
	})
	stats, err := Blaster{}.Blast(t.Context(), p.addr, 1, 10, func(i int) (string, string, []byte) {
		body := "fine"
		if i == 8 {
			body = "break"
		}
		return "", string(rune('0'+i)) + "@example.com", []byte(body)
	})
	if err != nil || stats.Accepted != 7 || stats.Temporary != 1 || stats.Permanent != 1 || stats.Lost != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
}

var _ driver.Queue = (*discardQueue)(nil)

func TestRepliesAreReadThroughSmallPackets(t *testing.T) {
	in := bufio.NewReaderSize(&byByte{[]byte("250-a\r\n250 b\r\n")}, maxReplyLine)
	code, text, err := readReply(in, nil, nil)
	if code != 250 || string(text) != "a b" || err != nil {
		t.Errorf("%d %q %v", code, text, err)
	}
}

type byByte struct{ rest []byte }

func (b *byByte) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	p[0] = b.rest[0]
	b.rest = b.rest[1:]
	return 1, nil
}
