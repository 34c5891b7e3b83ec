//go:build peers

package imaporacle

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// connection is a connection that has logged in.
type connection struct {
	conn  net.Conn
	in    *bufio.Reader
	tags  int
	asked int
}

// dial connects and logs in.
func dial(s *server, user, password string) (*connection, error) {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	c := &connection{conn: conn, in: bufio.NewReader(conn)}
	greeting, err := c.line()
	if err != nil || !strings.HasPrefix(greeting, "* OK ") {
		conn.Close()
		return nil, fmt.Errorf("%s greets with %q: %w", s.name, greeting, cmp.Or(err, errors.New("OK was expected")))
	}
	all, ended, err := c.command([]string{fmt.Sprintf("LOGIN %s %q", user, password)})
	if err != nil || ended || all[len(all)-1].name != "OK" {
		conn.Close()
		return nil, fmt.Errorf("%s refuses the login: %w", s.name, cmp.Or(err, errors.New("OK was expected")))
	}
	return c, nil
}

// line reads a response with its literals, without the CR LF at its end.
func (c *connection) line() (string, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	var all strings.Builder
	for {
		text, err := c.in.ReadString('\n')
		if err != nil {
			return all.String() + text, err
		}
		all.WriteString(text)
		n := literalLength(text)
		if n < 0 {
			return strings.TrimSuffix(all.String(), "\r\n"), nil
		}
		if _, err := io.CopyN(&all, c.in, int64(n)); err != nil {
			return all.String(), err
		}
	}
}

// literalLength returns the length of the literal that a line announces, or -1.
func literalLength(line string) int {
	line = strings.TrimSuffix(line, "\r\n")
	open := strings.LastIndexByte(line, '{')
	if open < 0 || !strings.HasSuffix(line, "}") {
		return -1
	}
	n, err := strconv.Atoi(line[open+1 : len(line)-1])
	if err != nil {
		return -1
	}
	return n
}

// command sends the parts of a command, and waits for a continuation before each but the first. It returns the responses; the last one is the
// tagged one. ended says that the server has closed the connection; then the tagged one can be missing.
func (c *connection) command(parts []string) (all []*response, ended bool, err error) {
	c.tags++
	return c.exchange("a"+strconv.Itoa(c.tags), parts)
}

// ask sends a command that is not part of the script, so that the tags of the script stay the same on both servers. It fails unless the answer is
// OK.
func (c *connection) ask(text string) ([]*response, error) {
	c.asked++
	all, ended, err := c.exchange("q"+strconv.Itoa(c.asked), []string{text})
	if err != nil || ended || all[len(all)-1].name != "OK" {
		return nil, fmt.Errorf("no OK in response to %q: %w", text, cmp.Or(err, errors.New("OK was expected")))
	}
	return all, nil
}

func (c *connection) exchange(tag string, parts []string) (all []*response, ended bool, err error) {
	text := tag + " "
	for i, part := range parts {
		text += part
		if i == len(parts)-1 {
			text += "\r\n"
		}
		if err := c.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return nil, false, err
		}
		if n, _ := io.WriteString(c.conn, text); n < len(text) { // the server has closed the connection
			return all, true, nil
		}
		text = ""
		for {
			line, err := c.line()
			if err != nil {
				var timeout net.Error
				if errors.As(err, &timeout) && timeout.Timeout() {
					return all, false, fmt.Errorf("no response to %q: %w", parts, err)
				}
				return all, true, nil
			}
			if strings.HasPrefix(line, "+ ") {
				if i == len(parts)-1 {
					return all, false, fmt.Errorf("a continuation nobody waits for, after %q", parts)
				}
				break
			}
			r, err := parseResponse(line)
			if err != nil {
				return all, false, fmt.Errorf("the response to %q cannot be parsed: %w", parts, err)
			}
			all = append(all, r)
			if r.tag == tag {
				return all, false, nil
			}
			if r.tag != "*" {
				return all, false, fmt.Errorf("a response with another tag, after %q: %q", parts, line)
			}
		}
	}
	return all, false, nil
}
