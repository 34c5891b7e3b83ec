//go:build peers

package peers

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// imapAccount looks at an account, and changes it, over a connection of its own that shares no code with the server.
type imapAccount struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	tag  int
}

// account opens the account of a person.
func (p *postOffice) account(name string) *imapAccount {
	p.t.Helper()
	host, port := p.listens("over IMAP")
	conn, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", net.JoinHostPort(host, port))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	a := &imapAccount{t: p.t, conn: conn, in: bufio.NewReader(conn)}
	a.line() // the greeting
	a.do("LOGIN %s@example.org %s", name, p.passwords[name])
	return a
}

// line reads a response with its literals.
func (a *imapAccount) line() string {
	a.t.Helper()
	var whole strings.Builder
	for {
		text, err := a.in.ReadString('\n')
		if err != nil {
			a.t.Fatalf("%q: %v", whole.String()+text, err)
		}
		whole.WriteString(text)
		literal := literalAtEnd.FindStringSubmatch(text)
		if literal == nil {
			return strings.TrimSuffix(whole.String(), "\r\n")
		}
		size, err := strconv.ParseInt(literal[1], 10, 64)
		if err != nil {
			a.t.Fatal(err)
		}
		if _, err := io.CopyN(&whole, a.in, size); err != nil {
			a.t.Fatal(err)
		}
	}
}

var literalAtEnd = regexp.MustCompile(`\{(\d+)\}\r\n$`)

// do runs a command that the server must accept, and returns the untagged responses.
func (a *imapAccount) do(format string, args ...any) []string {
	a.t.Helper()
	a.tag++
	tag := fmt.Sprintf("t%d ", a.tag)
	command := fmt.Sprintf(format, args...)
	if _, err := io.WriteString(a.conn, tag+command+"\r\n"); err != nil {
		a.t.Fatal(err)
	}
	var untagged []string
	for {
		line := a.line()
		if status, ok := strings.CutPrefix(line, tag); ok {
			if !strings.HasPrefix(status, "OK") {
				a.t.Fatalf("%s: %s", command, status)
			}
			return untagged
		}
		untagged = append(untagged, line)
	}
}

// folders returns the names of all mailboxes.
func (a *imapAccount) folders() (names []string) {
	a.t.Helper()
	for _, line := range a.do(`LIST "" "*"`) {
		if _, name, ok := strings.Cut(line, ` "/" `); ok && strings.HasPrefix(line, "* LIST ") {
			names = append(names, strings.Trim(name, `"`))
		}
	}
	return names
}

var (
	flagsOf   = regexp.MustCompile(`FLAGS \(([^)]*)\)`)
	subjectOf = regexp.MustCompile(`(?im)^Subject: (.*?)\r?$`)
)

// tree returns all messages.
func (a *imapAccount) tree() tree {
	a.t.Helper()
	all := tree{}
	for _, folder := range a.folders() {
		a.do("EXAMINE %q", folder)
		all[folder] = map[string]string{}
		for _, line := range a.do("UID FETCH 1:* (FLAGS BODY.PEEK[])") {
			found := flagsOf.FindStringSubmatch(line)
			_, text, isFetch := strings.Cut(line, "}\r\n")
			if found == nil || !isFetch {
				continue // another response
			}
			all.add(a.t, folder, strings.TrimSuffix(text, ")"), strings.Fields(found[1]))
		}
	}
	return all
}

// state returns the highest ModSeq and the next UID of each mailbox. It is the same as long as nobody changes anything.
func (a *imapAccount) state() []string {
	a.t.Helper()
	var all []string
	for _, folder := range a.folders() {
		for _, line := range a.do("STATUS %q (MESSAGES UIDNEXT UIDVALIDITY HIGHESTMODSEQ)", folder) {
			if strings.HasPrefix(line, "* STATUS ") {
				all = append(all, line)
			}
		}
	}
	slices.Sort(all)
	return all
}

func (a *imapAccount) create(folder string) {
	a.t.Helper()
	a.do("CREATE %q", folder)
	a.do("SUBSCRIBE %q", folder)
}

func (a *imapAccount) put(folder, text string, flags ...string) {
	a.t.Helper()
	a.do("APPEND %q (%s) {%d+}\r\n%s", folder, strings.Join(flags, " "), len(text), text)
}

func (a *imapAccount) flag(folder, subject, flag string) {
	a.t.Helper()
	a.do("UID STORE %s +FLAGS (%s)", a.uid(folder, subject), flag)
}

func (a *imapAccount) remove(folder, subject string) {
	a.t.Helper()
	uid := a.uid(folder, subject)
	a.do(`UID STORE %s +FLAGS.SILENT (\Deleted)`, uid)
	a.do("UID EXPUNGE %s", uid)
}

// uid selects a mailbox and returns the UID of the one message with a subject.
func (a *imapAccount) uid(folder, subject string) string {
	a.t.Helper()
	a.do("SELECT %q", folder)
	for _, line := range a.do("UID SEARCH SUBJECT %q", subject) {
		if list, ok := strings.CutPrefix(line, "* SEARCH "); ok && !strings.Contains(list, " ") {
			return list
		}
	}
	a.t.Fatalf("%s has no message %q, or several", folder, subject)
	return ""
}
