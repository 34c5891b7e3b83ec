package smtp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	fanfare "fanfare.dev/fanfare"
)

// dial opens a connection and prepares it for an envelope: greeting, EHLO, TLS, AUTH.
func (d *Driver) dial(ctx context.Context) (*conn, error) {
	dialer := net.Dialer{Timeout: d.cfg.ConnectTimeout}
	nc, err := dialer.DialContext(ctx, "tcp", d.cfg.Address)
	if err != nil {
		return nil, unavailable("cannot connect to "+d.cfg.Address, err)
	}
	w := &deadlineConn{Conn: nc}
	c := &conn{
		socket: w, rw: w, in: bufio.NewReaderSize(w, maxReplyLine),
		text: make([]byte, 0, maxReplyText), relay: nc.RemoteAddr().String(),
		stopWatching: context.AfterFunc(ctx, w.interrupt),
	}
	if d.cfg.Abort != nil {
		c.stopAborting = context.AfterFunc(d.cfg.Abort, func() { discard(nc) })
	}
	if err := d.greet(ctx, c); err != nil {
		c.close()
		return nil, unavailable("cannot open an SMTP session with "+d.cfg.Address, err)
	}
	return c, nil
}

// discard closes a connection, and discards data that the peer has not received. Otherwise the system would send the rest of a
// message later, when the network works again and another node has sent it or its subscription has ended.
func discard(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // an error has no effect
	}
	_ = nc.Close()
}

func unavailable(what string, err error) error {
	return fmt.Errorf("%w: %w", &fanfare.Error{Code: fanfare.Unavailable, Message: what}, err)
}

// A refusedError is a reply that ends the opening of a session.
type refusedError struct {
	step string
	code int
	text string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("unexpected reply to %s: %d %s", e.step, e.code, e.text)
}

func (d *Driver) greet(ctx context.Context, c *conn) error {
	c.setTimeout(d.cfg.CommandTimeout)
	if d.cfg.TLS == TLSImplicit {
		if err := d.handshake(ctx, c); err != nil {
			return err
		}
	}
	code, text, err := c.reply()
	if err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	if code != 220 {
		return &refusedError{"the connection", code, string(text)}
	}
	c.banner = string(text)
	if err := d.hello(c); err != nil {
		return err
	}
	if err := d.startTLS(ctx, c); err != nil {
		return err
	}
	if err := d.authenticate(c); err != nil {
		return err
	}
	d.mode.notOffered.Store(!c.extensions.pipelining)
	if c.extensions.pipelining {
		c.mode = d.mode.mode()
	}
	return nil
}

// hello sends EHLO and learns the extensions. A peer that does not support EHLO gets HELO
// and no extensions (RFC 5321, section 3.2).
func (d *Driver) hello(c *conn) error {
	c.extensions = extensions{}
	c.setTimeout(d.cfg.CommandTimeout)
	if err := c.write([]byte("EHLO " + d.cfg.Hello + "\r\n")); err != nil {
		return fmt.Errorf("EHLO: %w", err)
	}
	first := true
	code, text, err := readReply(c.in, c.text, func(line []byte) {
		if !first {
			c.extensions.learn(string(line))
		}
		first = false
	})
	c.text = text
	switch {
	case err != nil:
		return fmt.Errorf("EHLO: %w", err)
	case code == 250:
		return nil
	case code/100 != 5:
		return &refusedError{"EHLO", code, string(text)}
	}
	c.extensions = extensions{}
	if code, text, err = c.command("HELO " + d.cfg.Hello + "\r\n"); err != nil {
		return fmt.Errorf("HELO: %w", err)
	}
	if code != 250 {
		return &refusedError{"HELO", code, string(text)}
	}
	return nil
}

// learn parses one line of the reply to EHLO.
func (e *extensions) learn(line string) {
	keyword, params, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " ")
	switch keyword {
	case "PIPELINING":
		e.pipelining = true
	case "STARTTLS":
		e.starttls = true
	case "8BITMIME":
		e.eightBit = true
	case "SMTPUTF8":
		e.utf8 = true
	case "SIZE":
		e.size = true
		if n, err := strconv.Atoi(strings.TrimSpace(params)); err == nil && n > 0 {
			e.maxSize = n
		}
	case "AUTH":
		e.auth = append(e.auth, strings.Fields(params)...)
	}
}

// startTLS encrypts the connection if the configuration asks for it (RFC 3207).
func (d *Driver) startTLS(ctx context.Context, c *conn) error {
	if d.cfg.TLS != TLSOpportunistic && d.cfg.TLS != TLSRequired {
		return nil
	}
	if !c.extensions.starttls {
		if d.cfg.TLS == TLSRequired {
			return errors.New("TLS is required, but the peer does not offer STARTTLS")
		}
		return nil
	}
	c.setTimeout(d.cfg.CommandTimeout)
	code, text, err := c.command("STARTTLS\r\n")
	if err != nil {
		return fmt.Errorf("STARTTLS: %w", err)
	}
	if code != 220 {
		if d.cfg.TLS == TLSRequired {
			return &refusedError{"STARTTLS", code, string(text)}
		}
		return nil
	}
	// Bytes before the handshake were not protected: an injected reply would be read as if
	// the peer had sent it inside TLS.
	if c.in.Buffered() > 0 {
		return errors.New("the peer sent plain text after its reply to STARTTLS")
	}
	if err := d.handshake(ctx, c); err != nil {
		return err
	}
	return d.hello(c)
}

func (d *Driver) handshake(ctx context.Context, c *conn) error {
	t := tls.Client(c.socket, d.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	c.rw = t
	c.in.Reset(t)
	return nil
}

// clientTLS completes the TLS configuration of the caller.
func clientTLS(cfg Config) *tls.Config {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.TLSConfig != nil {
		t = cfg.TLSConfig.Clone()
	}
	if t.ServerName == "" {
		t.ServerName, _, _ = net.SplitHostPort(cfg.Address)
	}
	if cfg.TLS == TLSOpportunistic && cfg.Username == "" {
		t.InsecureSkipVerify = true
	}
	if t.ClientSessionCache == nil {
		t.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	}
	t.DynamicRecordSizingDisabled = true // a message in one record, and so in one write
	return t
}

// authenticate logs in if a user name is set (RFC 4954).
func (d *Driver) authenticate(c *conn) error {
	if d.cfg.Username == "" {
		return nil
	}
	if _, secure := c.rw.(*tls.Conn); !secure && !d.cfg.AllowPlainAuth && !loopback(c.socket.RemoteAddr()) {
		return errors.New("the password cannot be sent without TLS: set tls to required or implicit")
	}
	mechanism, err := pickMechanism(c.extensions.auth, d.cfg.Username, d.cfg.Password)
	if err != nil {
		return err
	}
	name, initial, err := mechanism.Start()
	if err != nil {
		return fmt.Errorf("AUTH %s: %w", name, err)
	}
	line := "AUTH " + name
	if initial != nil {
		line += " " + encode(initial)
	}
	for {
		c.setTimeout(d.cfg.CommandTimeout)
		code, text, err := c.command(line + "\r\n")
		switch {
		case err != nil:
			return fmt.Errorf("AUTH %s: %w", name, err)
		case code == 235:
			return nil
		case code != 334:
			return &refusedError{"AUTH " + name, code, string(text)}
		}
		challenge, err := decode(bytes.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("AUTH %s: %w", name, err)
		}
		answer, err := mechanism.Next(challenge)
		if err != nil {
			return fmt.Errorf("AUTH %s: %w", name, err)
		}
		line = encode(answer)
	}
}

func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
