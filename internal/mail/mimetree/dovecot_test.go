//go:build peers

package mimetree

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

const dovecotIMAP = "/usr/lib/dovecot/imap"

// TestTreesAreThoseOfDovecot compares structures, envelopes and the bytes of parts of generated messages with those that Dovecot returns.
func TestTreesAreThoseOfDovecot(t *testing.T) {
	count := uint64(3000)
	d := startDovecot(t)
	const batch = 100
	for from := uint64(0); from < count; from += batch {
		for i := range uint64(batch) {
			m := generate(from + i)
			d.send("a APPEND INBOX {%d+}\r\n%s\r\n", len(m), m)
			d.until("a")
		}
		d.send("n NOOP\r\n")
		d.until("n")
		for i := range uint64(batch) {
			seed := from + i
			m := generate(seed)
			tree := Parse(m)
			d.send("f FETCH %d (BODYSTRUCTURE ENVELOPE)\r\n", seed+1)
			items := d.fetched(d.until("f"))
			normalise(items["BODYSTRUCTURE"])
			normalise(items["ENVELOPE"])
			if want, got := items["BODYSTRUCTURE"], normalise(structureOf(tree)); !reflect.DeepEqual(want, got) {
				t.Errorf("seed %d: BODYSTRUCTURE\nDovecot %s\nhere    %s\n%q", seed, show(want), show(got), m)
			}
			if want, got := items["ENVELOPE"], envelopeOf(tree.Envelope); !reflect.DeepEqual(want, got) {
				t.Errorf("seed %d: ENVELOPE\nDovecot %s\nhere    %s\n%q", seed, show(want), show(got), m)
			}
			comparison{t, d, seed, m}.message(tree, "")
		}
	}
}

// comparison compares the bytes of the parts of one message.
type comparison struct {
	t    *testing.T
	d    *dovecot
	seed uint64
	m    []byte
}

func (c comparison) section(section string, r Range) {
	c.d.send("s FETCH %d BODY.PEEK[%s]\r\n", c.seed+1, section)
	want := c.d.fetched(c.d.until("s"))["BODY["+section+"]"]
	if want == nil {
		want = ""
	}
	if got := string(c.m[r.From:r.To]); want != got {
		c.t.Errorf("seed %d: BODY[%s]\nDovecot %q\nhere    %q\n%q", c.seed, section, want, got, c.m)
	}
}

// message compares a message, the parts of which have numbers with a prefix.
func (c comparison) message(p *Part, prefix string) {
	c.section(prefix+"HEADER", p.Header)
	c.section(prefix+"TEXT", p.Body)
	if p.IsMultipart() {
		c.children(p, prefix)
	} else {
		c.part(p, prefix+"1")
	}
}

func (c comparison) children(p *Part, prefix string) {
	for i, child := range p.Children {
		c.part(child, prefix+strconv.Itoa(i+1))
	}
}

func (c comparison) part(p *Part, path string) {
	c.section(path, p.Body)
	c.section(path+".MIME", p.Header)
	switch {
	case p.IsMessage():
		c.message(p.Children[0], path+".")
	case p.IsMultipart():
		c.children(p, path+".")
	}
}

// structureOf returns a BODYSTRUCTURE as lists and strings.
func structureOf(p *Part) any {
	var s []any
	common := func() {
		if p.Present.Has(HasDisposition) {
			s = append(s, []any{p.Disposition, paramsOf(p.DispositionParams, false)})
		} else {
			s = append(s, nil)
		}
		if len(p.Language) == 0 {
			s = append(s, nil)
		} else {
			var l []any
			for _, one := range p.Language {
				l = append(l, one)
			}
			s = append(s, l)
		}
		s = append(s, optional(p.Location, p.Present.Has(HasLocation)))
	}
	if p.IsMultipart() {
		for _, child := range p.Children {
			s = append(s, structureOf(child))
		}
		if len(p.Children) == 0 {
			s = append(s, []any{"text", "plain", []any{"charset", "us-ascii"}, nil, nil, "7bit", number("0"), number("0"), nil, nil, nil, nil})
		}
		s = append(s, p.Subtype, paramsOf(p.Params, false))
		common()
		return s
	}
	encoding := p.Encoding
	if encoding == "" {
		encoding = "7bit"
	}
	text := strings.EqualFold(p.Type, "text")
	s = append(s, p.Type, p.Subtype, paramsOf(p.Params, text), optional(p.ID, p.Present.Has(HasID)), optional(p.Description, p.Present.Has(HasDescription)),
		encoding, number(fmt.Sprint(p.Body.Len())))
	switch {
	case text:
		s = append(s, number(fmt.Sprint(p.Lines)))
	case p.IsMessage():
		s = append(s, envelopeOf(p.Children[0].Envelope), structureOf(p.Children[0]), number(fmt.Sprint(p.Lines)))
	}
	s = append(s, optional(p.MD5, p.Present.Has(HasMD5)))
	common()
	return s
}

// number is an atom that is not NIL.
type number string

func optional(s string, exists bool) any {
	if !exists {
		return nil
	}
	return s
}

func paramsOf(params []Param, withCharset bool) any {
	var l []any
	for _, p := range params {
		l = append(l, p.Name, p.Value)
		withCharset = withCharset && !strings.EqualFold(p.Name, "charset")
	}
	if withCharset {
		l = append(l, "charset", "us-ascii")
	}
	if l == nil {
		return nil
	}
	return l
}

func envelopeOf(e *Envelope) any {
	s := []any{optional(e.Date, e.Present.Has(HasDate)), optional(e.Subject, e.Present.Has(HasSubject))}
	for _, list := range [][]Address{e.From, e.Sender, e.ReplyTo, e.To, e.Cc, e.Bcc} {
		var l []any
		for _, a := range list {
			switch a.Group {
			case GroupBegin:
				l = append(l, []any{nil, nil, a.Mailbox, nil})
			case GroupEnd:
				l = append(l, []any{nil, nil, nil, nil})
			default:
				l = append(l, []any{optional(a.Name, a.Name != ""), optional(a.Route, a.Route != ""), a.Mailbox, a.Host})
			}
		}
		if l == nil {
			s = append(s, nil)
		} else {
			s = append(s, l)
		}
	}
	return append(s, optional(e.InReplyTo, e.Present.Has(HasInReplyTo)), optional(e.MessageID, e.Present.Has(HasMessageID)))
}

// normalise changes two things that mean the same: Dovecot writes text/plain in lower case if the message has no other properties, and an
// empty name for two quotes that are not an address.
func normalise(v any) any {
	list, _ := v.([]any)
	if len(list) > 6 {
		kind, _ := list[0].(string)
		subtype, _ := list[1].(string)
		if strings.EqualFold(kind+"/"+subtype, "text/plain") {
			list[0], list[1] = "text", "plain"
		}
	}
	if len(list) == 4 && list[0] == "" {
		list[0] = nil
	}
	for _, one := range list {
		normalise(one)
	}
	return v
}

func show(v any) string { return fmt.Sprintf("%q", v) }

// dovecot is a connection to Dovecot's imap process, which serves one user without a login.
type dovecot struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func startDovecot(t *testing.T) *dovecot {
	if _, err := os.Stat(dovecotIMAP); err != nil {
		t.Fatalf("%v: install the Debian package dovecot-imapd", err)
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} { // nobody reads them
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mail := filepath.Join(dir, "mail")
	if err := os.Mkdir(mail, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(mail, uid, gid); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "dovecot.conf")
	settings := fmt.Sprintf("base_dir = %s/run\nstate_dir = %[1]s/run\nlog_path = %[1]s/log\nmail_location = sdbox:%s\nssl = no\nfirst_valid_uid = 1\n"+
		"mail_uid = %d\nmail_gid = %d\nstats_writer_socket_path =\nnamespace inbox {\n inbox = yes\n}\n", dir, mail, uid, gid)
	if err := os.WriteFile(conf, []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), dovecotIMAP, "-c", conf)
	cmd.Env = []string{"USER=someone", "HOME=" + dir, "PATH=/usr/bin:/bin"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	d := &dovecot{t, in, bufio.NewReader(out)}
	d.send("e ENABLE IMAP4rev1\r\ns SELECT INBOX\r\n")
	d.until("s")
	return d
}

func (d *dovecot) send(format string, args ...any) {
	d.t.Helper()
	if _, err := fmt.Fprintf(d.in, format, args...); err != nil {
		d.t.Fatal(err)
	}
}

// until reads responses up to the one with a tag, which must be OK.
func (d *dovecot) until(tag string) [][]byte {
	d.t.Helper()
	var all [][]byte
	for {
		var response []byte
		for {
			line, err := d.out.ReadBytes('\n')
			if err != nil {
				d.t.Fatalf("Dovecot ended: %v after %q", err, response)
			}
			response = append(response, line...)
			n := literal(line)
			if n < 0 {
				break
			}
			text := make([]byte, n)
			if _, err := io.ReadFull(d.out, text); err != nil {
				d.t.Fatal(err)
			}
			response = append(response, text...)
		}
		if bytes.HasPrefix(response, []byte(tag+" ")) {
			if !bytes.HasPrefix(response, []byte(tag+" OK")) {
				d.t.Fatalf("Dovecot refused: %s", response)
			}
			return all
		}
		all = append(all, response)
	}
}

// literal returns the length of the literal that a line announces, or -1.
func literal(line []byte) int {
	line = bytes.TrimRight(line, "\r\n")
	start := bytes.LastIndexByte(line, '{')
	if start < 0 || !bytes.HasSuffix(line, []byte("}")) {
		return -1
	}
	n, err := strconv.Atoi(string(line[start+1 : len(line)-1]))
	if err != nil {
		return -1
	}
	return n
}

// fetched returns the items of a FETCH response.
func (d *dovecot) fetched(responses [][]byte) map[string]any {
	for _, r := range responses {
		if i := bytes.Index(r, []byte(" FETCH ")); i > 0 {
			p := tokens{d.t, r[i+7:]}
			list, _ := p.value().([]any)
			items := map[string]any{}
			for i := 0; i+1 < len(list); i += 2 {
				items[string(list[i].(number))] = list[i+1]
			}
			return items
		}
	}
	d.t.Fatalf("no FETCH response in %q", responses)
	return nil
}

// tokens parses a response.
type tokens struct {
	t    *testing.T
	rest []byte
}

func (p *tokens) value() any {
	p.rest = bytes.TrimLeft(p.rest, " ")
	switch p.rest[0] {
	case '(':
		var list []any
		for p.rest = bytes.TrimLeft(p.rest[1:], " "); p.rest[0] != ')'; p.rest = bytes.TrimLeft(p.rest, " ") {
			list = append(list, p.value())
		}
		p.rest = p.rest[1:]
		return list
	case '"':
		var s []byte
		i := 1
		for ; p.rest[i] != '"'; i++ {
			if p.rest[i] == '\\' {
				i++
			}
			s = append(s, p.rest[i])
		}
		p.rest = p.rest[i+1:]
		return string(s)
	case '{', '~':
		start := bytes.IndexByte(p.rest, '{')
		end := bytes.IndexByte(p.rest, '}')
		n, err := strconv.Atoi(string(p.rest[start+1 : end]))
		if err != nil {
			p.t.Fatal(err)
		}
		s := string(p.rest[end+3 : end+3+n])
		p.rest = p.rest[end+3+n:]
		return s
	}
	end := bytes.IndexAny(p.rest, " ()\r\n")
	if b := bytes.IndexByte(p.rest[:end], '['); b >= 0 {
		end = bytes.IndexByte(p.rest, ']') + 1
	}
	atom := string(p.rest[:end])
	p.rest = p.rest[end:]
	if atom == "NIL" {
		return nil
	}
	return number(atom)
}
