package imap_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/imap"
)

// pipes is a listener whose connections are pipes in this process.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, isOpen := <-p
	if !isOpen {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// beforeFuzz are the commands before the bytes of the fuzzer.
var beforeFuzz = []string{
	"",
	"LOGIN",
	"LOGIN\r\ns SELECT INBOX\r\n",
	"LOGIN\r\ns ENABLE QRESYNC IMAP4rev2\r\ns SELECT INBOX\r\n",
	"LOGIN\r\ns SELECT INBOX\r\ns IDLE\r\n",
	"LOGIN\r\ns EXAMINE INBOX\r\n",
}

// response is a line that a server may send.
var response = regexp.MustCompile(`^(\* |\+ |[^ ()]+ (OK|NO|BAD) )`)

// FuzzSession sends bytes in each state of a session. The server must send responses of the right form, must not report an internal error, and
// must end the connection after the client has ended its input.
func FuzzSession(f *testing.F) {
	for state := range beforeFuzz {
		for _, text := range []string{
			"a NOOP\r\nb CAPABILITY\r\n", "a FETCH 1:* (FLAGS BODY[] BODYSTRUCTURE)\r\n", "a UID STORE 1:* +FLAGS (x \\Deleted)\r\nb EXPUNGE\r\n", "a APPEND INBOX {5+}\r\nabcde\r\n", "DONE\r\na SEARCH TEXT x\r\n",
			"a LIST (SUBSCRIBED) \"\" (* %) RETURN (STATUS (SIZE RECENT))\r\n", "a COPY 1 Sent\r\nb MOVE 1 Sent\r\n", "a LOGIN {3+}\r\nabc {2+}\r\nde\r\n", "a AUTHENTICATE PLAIN\r\nAGEAYg==\r\n",
			"a SELECT INBOX (QRESYNC (1795867201 1 1:9))\r\n", "a FETCH 1 BODY[1.HEADER.FIELDS (A)]<1.2>\r\n", "a CREATE a/b\r\nb RENAME a c\r\nc DELETE c/b\r\n", "a IDLE\r\nDONE\r\n", "a STATUS INBOX (MESSAGES)\r\nb CLOSE\r\n",
		} {
			f.Add(uint8(state), []byte(text))
		}
	}
	w := newWorld(f, nil)
	seed := w.login(1)
	seed.ok("APPEND INBOX {=Subject: x\\r\\nMIME-Version: 1.0\\r\\nContent-Type: multipart/mixed; boundary=b\\r\\n\\r\\n--b\\r\\n\\r\\ntext\\r\\n--b\\r\\nContent-Type: message/rfc822\\r\\n\\r\\nSubject: y\\r\\n\\r\\nz\\r\\n--b--\\r\\n=}")
	var logged strings.Builder
	server := imap.New(imap.Options{Name: "mail.example.org", Store: w.store, Login: w.logins, Clock: w.clock, TrustsNetwork: func(netip.Addr) bool { return true },
		Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelError})), Limits: imap.Limits{FailureDelay: time.Nanosecond, UnauthenticatedPerNet: 1000, ConnectionsPerAccount: 1000, MaxMessageBytes: 10_000}})
	f.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		server.Close(ctx)
	})
	listener := make(pipes)
	go server.Serve(listener)
	f.Fuzz(func(t *testing.T, state uint8, raw []byte) {
		before := beforeFuzz[int(state)%len(beforeFuzz)]
		before = strings.Replace(before, "LOGIN", "l LOGIN "+address(2)+" "+w.password, 1)
		if before != "" && !strings.HasSuffix(before, "\r\n") {
			before += "\r\n"
		}
		here, there := net.Pipe()
		listener <- there
		_ = here.SetDeadline(time.Now().Add(patience))
		go func() {
			_, _ = io.WriteString(here, before+string(raw)+"\r\nDONE\r\nz LOGOUT\r\n")
			_ = here.SetReadDeadline(time.Now().Add(time.Second)) // the end can be a part of a literal
		}()
		c := &client{t: t, conn: here, in: bufio.NewReader(here)}
		for {
			line, err := c.nextNow()
			if err != nil {
				break
			}
			if !response.MatchString(line) {
				t.Fatalf("response %q", line)
			}
			if strings.Contains(line, "SERVERBUG") {
				t.Fatalf("response %q", line)
			}
			if strings.HasPrefix(line, "z OK") {
				break
			}
		}
		here.Close()
		if logged.Len() > 0 {
			t.Fatal(logged.String())
		}
	})
}
