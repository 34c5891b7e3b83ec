package chaos

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// An arrival is a message that the relay received completely.
type arrival struct {
	at     time.Time // the body began to arrive
	done   time.Time // the body had arrived
	by     string    // the node that sent it; "" if the test is not isolated
	to     string
	id     string   // Message-ID
	tokens []string // of the events in its text
}

// A relay is an SMTP server without faults of its own.
type relay struct {
	address  string
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	arrivals []arrival
	bad      []string // messages without a token
	held     chan struct{}
	machines map[string]string // names, by host
}

// replyDelay is the time that the relay takes for each message.
const replyDelay = 10 * time.Millisecond

func newRelay(t testing.TB, host string) *relay {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp4", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: l.Addr().String(), listener: l, conns: map[net.Conn]struct{}{}, machines: map[string]string{}}
	r.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.running.Go(func() { r.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.release()
		r.cut()
		r.running.Wait()
	})
	return r
}

// cut closes all connections at once, and returns their number by node.
func (r *relay) cut() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := map[string]int{}
	for c := range r.conns {
		by[r.nodeOf(c)]++
		reset(c)
	}
	return by
}

// knows tells the relay the name of a machine.
func (r *relay) knows(host, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.machines[host] = name
}

// nodeOf returns the node that opened a connection. The caller holds r.mu.
func (r *relay) nodeOf(c net.Conn) string {
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	return r.machines[host]
}

// hold delays the replies to messages until release.
func (r *relay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = make(chan struct{})
	}
}

func (r *relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held != nil {
		close(r.held)
		r.held = nil
	}
}

// received returns all arrivals so far.
func (r *relay) received() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrivals[:len(r.arrivals):len(r.arrivals)]
}

func (r *relay) serve(conn net.Conn) {
	r.mu.Lock()
	r.conns[conn] = struct{}{}
	by := r.nodeOf(conn)
	r.mu.Unlock()
	defer func() {
		_ = conn.Close()
		r.mu.Lock()
		delete(r.conns, conn)
		r.mu.Unlock()
	}()
	in := textproto.NewReader(bufio.NewReader(conn))
	reply := func(text string) bool {
		_, err := io.WriteString(conn, text+"\r\n")
		return err == nil
	}
	if !reply("220 relay ESMTP") {
		return
	}
	var to string
	for {
		line, err := in.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		var ok bool
		switch strings.ToUpper(verb) {
		case "EHLO":
			ok = reply("250-relay\r\n250-PIPELINING\r\n250 8BITMIME")
		case "RCPT":
			_, address, _ := strings.Cut(rest, "<")
			to, _, _ = strings.Cut(address, ">")
			ok = reply("250 ok")
		case "DATA":
			ok = reply("354 go on") && r.take(in, by, to) && reply("250 ok")
		case "QUIT":
			reply("221 bye")
			return
		default:
			ok = reply("250 ok")
		}
		if !ok {
			return
		}
	}
}

var tokenPattern = regexp.MustCompile(`<((?:story|note|quote|bulletin|message)-[a-z0-9-]+)>`)

// take receives a message, and reports whether it did before the connection ended.
func (r *relay) take(in *textproto.Reader, by, to string) bool {
	if _, err := in.R.Peek(1); err != nil {
		return false
	}
	at := time.Now()
	body, err := io.ReadAll(in.DotReader())
	if err != nil {
		return false
	}
	a := arrival{at: at, done: time.Now(), by: by, to: to}
	m, err := mail.ReadMessage(bytes.NewReader(body))
	if err == nil {
		a.id = m.Header.Get("Message-ID")
		text, failed := io.ReadAll(m.Body)
		err = failed
		for _, match := range tokenPattern.FindAllSubmatch(text, -1) {
			a.tokens = append(a.tokens, string(match[1]))
		}
	}
	if err == nil && (a.id == "" || len(a.tokens) == 0) {
		err = errors.New("it has no Message-ID or no event")
	}
	r.mu.Lock()
	if err != nil {
		r.bad = append(r.bad, to+": "+err.Error()+": "+string(body))
	} else {
		r.arrivals = append(r.arrivals, a)
	}
	held := r.held
	r.mu.Unlock()
	if held != nil {
		<-held
	}
	<-time.After(replyDelay)
	return true
}

func TestTheRelayRecordsMessages(t *testing.T) {
	t.Parallel()
	r := newRelay(t, "127.0.0.1")
	text := "Message-ID: <1@example.org>\r\nSubject: x\r\n\r\n<story-1>\r\n<note-a-2> <none>\r\n"
	if err := smtp.SendMail(r.address, nil, "from@example.org", []string{"ada@example.org"}, []byte(text)); err != nil {
		t.Fatal(err)
	}
	all := r.received()
	if len(all) != 1 || all[0].to != "ada@example.org" || all[0].id != "<1@example.org>" || strings.Join(all[0].tokens, " ") != "story-1 note-a-2" || all[0].at.IsZero() {
		t.Fatalf("received %+v", all)
	}
	for len(r.cut()) > 0 { // the connection of the message has not ended yet
		<-time.After(time.Millisecond)
	}
	client, err := smtp.Dial(r.address)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Noop(); err != nil {
		t.Fatal(err)
	}
	if by := r.cut(); by[""] != 1 {
		t.Errorf("%v connections were open", by)
	}
	if err := client.Noop(); err == nil {
		t.Error("a closed connection responds")
	}
}
