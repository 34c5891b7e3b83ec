package inbound

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// states are the input before the bytes of the fuzzer.
var states = []string{
	"",
	"EHLO peer.example.com\r\n",
	"EHLO peer.example.com\r\nMAIL FROM:<a@example.com>\r\n",
	"EHLO peer.example.com\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<" + bounceTo + ">\r\n",
	"EHLO peer.example.com\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<" + bounceTo + ">\r\nDATA\r\n",
	"EHLO peer.example.com\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<" + leaveTo + ">\r\nRCPT TO:<postmaster>\r\nDATA\r\n",
}

// script is a connection that reads from a script and ends with it.
type script struct {
	net.Conn
	in      io.Reader
	answers bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error)      { return s.answers.Write(p) }
func (s *script) Close() error                     { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// turns splits the input at the replies that a peer has to wait for.
type turns []io.Reader

func (t *turns) Read(p []byte) (int, error) {
	for len(*t) > 0 {
		if n, err := (*t)[0].Read(p); n > 0 || err == nil {
			return n, nil
		}
		*t = (*t)[1:]
	}
	return 0, io.EOF
}

// FuzzSession sends bytes in each state of a session. The server must accept only verified
// recipients, reply in the form of SMTP, and accept no message with a line that does not end in
// CR LF.
func FuzzSession(f *testing.F) {
	for state := range states {
		f.Add(uint8(state), []byte("QUIT\r\n"))
		f.Add(uint8(state), []byte("x\n.\r\nMAIL FROM:<>\r\n"))
		f.Add(uint8(state), []byte("Subject: x\r\n\r\n..\r\n.\r\nMAIL FROM:<>\r\nRCPT TO:<"+bounceTo+">\r\nDATA\r\ny\r\n.\r\nQUIT\r\n"))
	}
	f.Fuzz(func(t *testing.T, state uint8, raw []byte) {
		w := &world{t: t}
		o := options(w)
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		s := newServer(o)
		s.ctx, s.cancel = t.Context(), func() {}
		said := states[int(state)%len(states)]
		peer := &script{in: &turns{}}
		spoken := turns{}
		for _, line := range strings.SplitAfter(said, "\r\n") {
			spoken = append(spoken, strings.NewReader(line))
		}
		spoken = append(spoken, bytes.NewReader(raw))
		peer.in = &spoken
		newSession(s, peer).run()
		if s.counters.panics.Load() > 0 {
			t.Fatal("it panicked")
		}
		for line := range strings.SplitAfterSeq(peer.answers.String(), "\r\n") {
			if line != "" && (len(line) < 6 || !strings.HasSuffix(line, "\r\n") || line[3] != ' ' && line[3] != '-' || strings.ContainsAny(line[:len(line)-2], "\r\n")) {
				t.Fatalf("not an answer: %q", line)
			}
		}
		for _, a := range w.taken {
			if a.To != "abuse@bounces.example.org" && a.To != "abuse@returns.example.net" {
				if _, _, _, err := verify(a.To[:strings.IndexByte(a.To, '@')]); err != nil {
					t.Fatalf("taken for %q", a.To)
				}
			}
			if bare := bytes.ReplaceAll(a.Raw, []byte("\r\n"), nil); bytes.ContainsAny(bare, "\r\n") {
				t.Fatalf("taken with a broken line: %q", a.Raw)
			}
		}
	})
}
