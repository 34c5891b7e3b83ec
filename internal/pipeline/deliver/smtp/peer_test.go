package smtp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The point at which a peer replies; a hook may reply instead.
const (
	atConnect = "CONNECT"
	atEHLO    = "EHLO"
	atMail    = "MAIL"
	atRcpt    = "RCPT"
	atData    = "DATA"
	atBegin   = "BEGIN" // the first line of a body was read
	atBody    = "BODY"  // the final dot was read
	atReset   = "RSET"
	atQuit    = "QUIT"
)

// Replies of a hook that are not text.
const (
	standard = ""         // the usual reply
	hangUp   = "\x00drop" // close the connection
	silence  = "\x00mute" // send nothing from then on
	dripping = "\x00drip" // one byte at a time, without an end
)

// An exchange is what the peer has to reply to.
type exchange struct {
	conn int    // connections from 0
	at   string // point of the session
	line string // the command, or the whole body as sent
}

// A peer is a scripted server on a real socket. It behaves like the servers that were
// measured: a refused RCPT leaves the transaction open; a nested MAIL is refused with 503,
// but its RCPT and DATA count for the previous transaction.
type peer struct {
	t     *testing.T
	addr  string
	ehlo  []string // extensions
	hook  func(exchange) string
	check func(from string, rcpts []string, body string) // called for every complete body

	stubborn bool // a refused body leaves its transaction open

	asking sync.Mutex // held while the hook runs

	mu    sync.Mutex
	conns int
	log   []string // "conn verb ..."
}

func startPeer(t *testing.T, hook func(exchange) string, ehlo ...string) *peer {
	t.Helper()
	if ehlo == nil {
		ehlo = []string{"PIPELINING", "8BITMIME", "SMTPUTF8", "SIZE 100000"}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if hook == nil {
		hook = func(exchange) string { return standard }
	}
	p := &peer{t: t, addr: l.Addr().String(), ehlo: ehlo, hook: hook}
	var wg sync.WaitGroup
	var open []net.Conn
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns++
			open = append(open, c)
			p.mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				p.serve(n, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		p.mu.Unlock()
		wg.Wait()
	})
	return p
}

// ask calls the hook for one connection at a time.
func (p *peer) ask(now exchange) string {
	p.mu.Lock()
	hook := p.hook
	p.mu.Unlock()
	p.asking.Lock()
	defer p.asking.Unlock()
	return hook(now)
}

func (p *peer) note(conn int, line string) {
	p.mu.Lock()
	p.log = append(p.log, fmt.Sprintf("%d %s", conn, line))
	p.mu.Unlock()
}

func (p *peer) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

func (p *peer) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns
}

func (p *peer) serve(n int, c net.Conn) {
	in := bufio.NewReader(c)
	// answer sends the reply of the hook or the usual one, and returns the first digit of
	// its code, or 0 if the connection is closed.
	answer := func(at, line, usual string) byte {
		reply := p.ask(exchange{n, at, line})
		if reply == standard {
			reply = usual
		}
		switch reply {
		case hangUp:
			return 0
		case silence:
			_, _ = io.Copy(io.Discard, in)
			return 0
		case dripping:
			beat := time.NewTicker(time.Millisecond)
			defer beat.Stop()
			for {
				if _, err := c.Write([]byte{'2'}); err != nil {
					return 0
				}
				<-beat.C
			}
		}
		if _, err := c.Write([]byte(reply + "\r\n")); err != nil || strings.HasPrefix(reply, "421") {
			return 0
		}
		return reply[0]
	}
	if answer(atConnect, "", "220 peer ESMTP") != '2' {
		return
	}
	var open bool
	var from string
	var rcpts []string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		p.note(n, line)
		verb, _, _ := strings.Cut(line, " ")
		var got byte
		switch verb {
		case "EHLO":
			reply := "250-peer"
			for _, e := range p.ehlo {
				reply += "\r\n250-" + e
			}
			got = answer(atEHLO, line, reply+"\r\n250 HELP")
		case "HELO":
			got = answer(verb, line, "250 peer")
		case "MAIL":
			if open {
				got = answer("NESTED", line, "503 5.5.1 nested MAIL command")
			} else {
				got = answer(atMail, line, "250 2.1.0 Ok")
			}
			if got == '2' { // no client can notice that a peer accepts MAIL and goes on with an earlier transaction
				open, from, rcpts = true, between(line), nil
			}
		case "RCPT":
			if !open {
				got = answer("EARLY", line, "503 5.5.1 MAIL first")
			} else if got = answer(atRcpt, line, "250 2.1.5 Ok"); got == '2' {
				rcpts = append(rcpts, between(line))
			}
		case "DATA":
			switch {
			case !open:
				got = answer("EARLY", line, "503 5.5.1 MAIL first")
			case len(rcpts) == 0:
				got = answer("NOBODY", line, "554 5.5.1 no valid recipients")
			default:
				got = answer(atData, line, "354 go ahead")
			}
			if got != '3' {
				break
			}
			first, err := in.ReadString('\n')
			if err != nil || p.ask(exchange{n, atBegin, first}) == hangUp {
				return
			}
			var body strings.Builder
			for next := first; next != ".\r\n"; {
				body.WriteString(next)
				if next, err = in.ReadString('\n'); err != nil {
					return
				}
			}
			p.note(n, "(body)")
			p.mu.Lock()
			check := p.check
			p.mu.Unlock()
			if check != nil {
				check(from, rcpts, body.String())
			}
			got = answer(atBody, body.String(), "250 2.0.0 queued")
			p.mu.Lock()
			forget := got == '2' || !p.stubborn
			p.mu.Unlock()
			if forget {
				open, rcpts = false, nil
			}
		case "RSET":
			open, rcpts = false, nil
			got = answer(atReset, line, "250 2.0.0 Ok")
		case "QUIT":
			answer(atQuit, line, "221 2.0.0 bye")
			return
		default:
			got = answer(verb, line, "500 5.5.2 unknown command")
		}
		if got == 0 {
			return
		}
	}
}

func between(line string) string {
	_, rest, _ := strings.Cut(line, "<")
	address, _, _ := strings.Cut(rest, ">")
	return address
}
