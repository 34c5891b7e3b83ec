package mailboxes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// commandPatience is how long a command may take.
const commandPatience = 2 * time.Minute

// An imapClient sends one command at a time and reads its response. It knows only as much of RFC 9051 as the experiments need.
type imapClient struct {
	conn net.Conn
	in   *bufio.Reader
	sent int // commands
}

// dialIMAP opens a connection and logs in.
func dialIMAP(ctx context.Context, address string, u mailUser) (*imapClient, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &imapClient{conn: conn, in: bufio.NewReader(conn)}
	if err := conn.SetDeadline(time.Now().Add(commandPatience)); err != nil {
		return nil, err
	}
	if _, err := c.line(); err != nil {
		return nil, err
	}
	_, err = c.command(fmt.Sprintf("LOGIN %q %q", u.User, u.Password))
	return c, err
}

// command sends a command and returns the untagged responses before its result.
func (c *imapClient) command(text string) (string, error) {
	if err := c.start(text); err != nil {
		return "", err
	}
	return c.finish("")
}

// start sends a command.
func (c *imapClient) start(text string) error {
	c.sent++
	if err := c.conn.SetDeadline(time.Now().Add(commandPatience)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.conn, "a%d %s\r\n", c.sent, text)
	return err
}

// finish sends the rest of a command, and returns the untagged responses before its result.
func (c *imapClient) finish(rest string) (string, error) {
	if rest != "" {
		if _, err := io.WriteString(c.conn, rest); err != nil {
			return "", err
		}
	}
	tag := fmt.Sprintf("a%d ", c.sent)
	var answer strings.Builder
	for {
		line, err := c.line()
		if err != nil {
			return "", err
		}
		if result, ok := strings.CutPrefix(line, tag); ok {
			if !strings.HasPrefix(result, "OK") {
				return "", fmt.Errorf("the result is %s", strings.TrimSpace(result))
			}
			return answer.String(), nil
		}
		answer.WriteString(line)
	}
}

// line reads a line with its literals.
func (c *imapClient) line() (string, error) {
	var whole strings.Builder
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		whole.WriteString(line)
		start := strings.LastIndexByte(line, '{')
		if start < 0 || !strings.HasSuffix(line, "}\r\n") {
			return whole.String(), nil
		}
		n, err := strconv.ParseInt(line[start+1:len(line)-3], 10, 64)
		if err != nil {
			return "", fmt.Errorf("literal in %q: %w", line, err)
		}
		if _, err := io.CopyN(&whole, c.in, n); err != nil {
			return "", err
		}
	}
}

func (c *imapClient) close() error {
	_, err := c.command("LOGOUT")
	if e := c.conn.Close(); err == nil {
		err = e
	}
	return err
}

// numberAfter returns the number behind a text.
func numberAfter(answer, text string) (int64, error) {
	_, rest, found := strings.Cut(answer, text)
	if !found {
		return 0, fmt.Errorf("%q has no %q", answer, text)
	}
	digits := strings.TrimLeft(rest, "0123456789")
	return strconv.ParseInt(rest[:len(rest)-len(digits)], 10, 64)
}
