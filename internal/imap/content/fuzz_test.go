package content

import (
	"bytes"
	"testing"

	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// FuzzSections writes the items of arbitrary messages. They must be balanced lists, and the sections must be parts of the message.
func FuzzSections(f *testing.F) {
	f.Add([]byte("Subject: x\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: \"y\r\n\r\nz\r\n--b--\r\n"), []byte{1, 1})
	f.Add([]byte("From: a <b@c>, group: d@e;\r\nContent-Type: text/plain; charset=\"\xff\"\r\nContent-Disposition: x; y*=utf-8''z\r\n\r\n"), []byte{})
	f.Add([]byte("no header"), []byte{2})
	f.Fuzz(func(t *testing.T, message, path []byte) {
		tree := mimetree.Parse(message)
		for _, w := range []Writer{{}, {UTF8: true}} {
			for _, text := range [][]byte{w.Structure(nil, tree, true), w.Structure(nil, tree, false), w.Envelope(nil, tree.Envelope)} {
				if rest, ok := balanced(text); !ok || len(rest) > 0 {
					t.Fatalf("the list is not balanced: %q", text)
				}
			}
		}
		var s syntax.Section
		for _, n := range path[:min(len(path), 10)] {
			s.Part = append(s.Part, 1+int(n)%5)
		}
		for _, s.Of = range []string{"", "TEXT", "HEADER", "MIME"} {
			if got := Section(tree, message, s); len(got) > 0 && !bytes.Contains(message, got) {
				t.Fatalf("section %v is not a part of the message: %q", s, got)
			}
		}
		s.Of, s.Fields = "HEADER.FIELDS", []string{"subject", "From"}
		with := len(Section(tree, message, s))
		s.Of = "HEADER.FIELDS.NOT"
		if without := len(Section(tree, message, s)); with+without > len(message)+8 {
			t.Fatalf("the fields have %d and %d bytes of %d", with, without, len(message))
		}
		if data, err := Binary(tree, message, s.Part); err == nil && len(data) > len(message) {
			t.Fatalf("%d decoded bytes of %d", len(data), len(message))
		}
	})
}

// balanced reads one value and returns the bytes behind it.
func balanced(b []byte) (rest []byte, ok bool) {
	switch {
	case len(b) == 0:
		return nil, false
	case b[0] == '(':
		for b = b[1:]; len(b) > 0 && b[0] != ')'; {
			if b[0] == ' ' {
				b = b[1:]
				continue
			}
			if b, ok = balanced(b); !ok {
				return nil, false
			}
		}
		if len(b) == 0 {
			return nil, false
		}
		return b[1:], true
	case b[0] == '"':
		for i := 1; i < len(b); i++ {
			switch b[i] {
			case '\\':
				i++
			case '"':
				return b[i+1:], true
			case '\r', '\n':
				return nil, false
			}
		}
		return nil, false
	case b[0] == '{':
		end := bytes.Index(b, []byte("}\r\n"))
		if end < 0 {
			return nil, false
		}
		n := 0
		for _, c := range b[1:end] {
			if c < '0' || c > '9' {
				return nil, false
			}
			n = 10*n + int(c-'0')
		}
		if end+3+n > len(b) {
			return nil, false
		}
		return b[end+3+n:], true
	}
	i := bytes.IndexAny(b, " ()")
	if i < 0 {
		return nil, true
	}
	return b[i:], i > 0
}
