package mimetree

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes random messages: valid ones, and ones with the mistakes that mail has.
type generator struct {
	*rand.Rand
	boundaries []string
}

func (g *generator) one(all ...string) string { return all[g.IntN(len(all))] }

func (g *generator) rarely() bool { return g.IntN(8) == 0 }

// message writes a message.
func (g *generator) message(depth int) string {
	var b strings.Builder
	fields := []string{"Date", "Subject", "From", "To", "Cc", "Bcc", "Sender", "Reply-To", "In-Reply-To", "Message-ID", "X-Other"}
	for _, name := range fields {
		if g.IntN(3) == 0 {
			continue
		}
		for range 1 + g.IntN(10)/9 {
			b.WriteString(g.one(name, name, name, strings.ToUpper(name), name+" ") + ":" + g.one(" ", " ", " ", "", "  ", "\t", "\r\n ", " \r\n\t"))
			switch name {
			case "Date", "Subject", "In-Reply-To", "Message-ID", "X-Other":
				b.WriteString(g.text())
			default:
				b.WriteString(g.addresses())
			}
			b.WriteString("\r\n")
		}
	}
	if g.rarely() {
		b.WriteString(g.one("a line without a colon\r\n", " begins with a space: x\r\n", ": no name\r\n", "-- two dashes\r\n"))
	}
	if g.IntN(4) > 0 {
		b.WriteString("MIME-Version: 1.0\r\n")
	}
	b.WriteString(g.part(depth))
	return b.String()
}

func (g *generator) text() string {
	words := []string{"one", "two", "=?utf-8?Q?=C3=A4?=", "\"quoted\"", "back\\slash", "<a@b.example>", "ä", "", "(", "{3}", "%"}
	var b strings.Builder
	for i := range g.IntN(5) {
		if i > 0 {
			b.WriteString(g.one(" ", " ", " ", "  ", "\t", "\r\n ", "\r\n\t", "\r\n   "))
		}
		b.WriteString(g.one(words...))
	}
	return b.String()
}

func (g *generator) addresses() string {
	var b strings.Builder
	for i := range g.IntN(4) {
		if i > 0 {
			b.WriteString(g.one(",", ", ", ",\r\n ", " , ", ";", ",,", ""))
		}
		b.WriteString(g.address(true))
	}
	return b.String()
}

func (g *generator) address(groups bool) string {
	spec := g.one("joe@example.org", "joe@example.org", "\"joe doe\"@example.org", "joe . doe@example . org", "joe@[10.0.0.1]", "joe", "@example.org", "joe@", "", "jöe@exämple.org", "joe@example.org>", "\"\"@x", ".joe@x", "joe..doe@x", "a b@c")
	switch g.IntN(8) {
	case 0, 1:
		return spec
	case 2, 3:
		return g.one("Joe Doe", "\"Joe, Doe\"", "=?utf-8?Q?J=C3=B6?=", "Joe Q. Public", "\"Joe \\\"X\\\" Doe\"", "Joe  \t Doe", "\"\"", ". Joe", "Jö", "Joe (comment) Doe", "\"Joe\r\n Doe\"") + g.one(" ", " ", "", "\r\n ") + "<" + spec + g.one(">", ">", ">", "", "> x")
	case 4:
		return "<" + g.one("@a,@b:", "@a:", "@:", "@a") + spec + ">"
	case 5:
		return spec + g.one(" (Joe Doe)", " (a) (b)", "(nested (one))", " (open", " (es\\)caped)")
	case 6:
		return g.one("x y z", "\"only quoted\"", "(only a comment)", "<>", "<", ">", ":", "undisclosed-recipients:;")
	}
	if !groups {
		return spec
	}
	var b strings.Builder
	b.WriteString(g.one("Group", "A Group", "\"quoted group\"", "", "\"\"") + ":")
	for i := range g.IntN(3) {
		if i > 0 {
			b.WriteString(g.one(",", ", ", ";"))
		}
		b.WriteString(g.address(false))
	}
	return b.String() + g.one(";", ";", ";", "", "; ")
}

// part writes the Content fields and the body of a part.
func (g *generator) part(depth int) string {
	var b strings.Builder
	kind := g.IntN(10)
	if depth == 0 {
		kind = min(kind, 5)
	}
	var boundary string
	switch {
	case kind < 5:
		if g.IntN(4) > 0 {
			b.WriteString("Content-Type: " + g.one("text/plain", "text/html", "TEXT/Plain", "application/octet-stream", "image/png", "text", "text/", "/plain", "", "text/plain/x", "message/delivery-status", "message/external-body", "a(c)/(c)b", "text /plain") + g.params() + "\r\n")
		}
	case kind < 8:
		boundary = g.one("b", "bb", "b-c", "=_x'y", "a very long boundary with spaces in it", fmt.Sprint("b", depth), "--", "b--")
		if len(g.boundaries) > 0 && g.IntN(3) == 0 {
			boundary = g.one(g.boundaries...)
		}
		b.WriteString("Content-Type: " + g.one("multipart/mixed", "multipart/alternative", "Multipart/Digest", "multipart/digest", "multipart/", "multipart/related") + ";" + g.one(" ", "\r\n ", "") + "boundary=\"" + boundary + "\"" + g.params() + "\r\n")
	default:
		b.WriteString("Content-Type: " + g.one("message/rfc822", "Message/RFC822", "message/rfc822") + g.params() + "\r\n")
	}
	for _, f := range [][]string{
		{"Content-Transfer-Encoding", "7bit", "base64", "Quoted-Printable", "", "x-other", "8bit (comment)", "two words"},
		{"Content-ID", "<x@y>", "", "folded\r\n <x@y>"},
		{"Content-Description", "some text", "\"quoted\"", "", "  spaces  ", "a\r\n\tb"},
		{"Content-MD5", "Q2hlY2s=", ""},
		{"Content-Disposition", "attachment", "inline; filename=a.txt", "attachment;\r\n filename*0=\"a b\";\r\n filename*1=c", "", ";x=y", "attachment; filename*=utf-8''%41%42", "a b"},
		{"Content-Language", "de", "de, en", "de,en-GB , fr", "", "(c) de", "de en", ",de"},
		{"Content-Location", "http://example.org/", "", "a\r\n b"},
	} {
		if g.rarely() {
			b.WriteString(f[0] + g.one(": ", ":", " : ") + g.one(f[1:]...) + "\r\n")
			if g.rarely() {
				b.WriteString(f[0] + ": " + g.one(f[1:]...) + "\r\n")
			}
		}
	}
	if g.IntN(12) == 0 && len(g.boundaries) > 0 { // the header ends without an empty line
		return b.String() + g.one("", "--"+g.one(g.boundaries...)+"\r\n")
	}
	b.WriteString("\r\n")
	switch {
	case kind < 5:
		b.WriteString(g.body())
	case kind < 8:
		g.boundaries = append(g.boundaries, boundary)
		b.WriteString(g.one("", "", "\r\n", "preamble\r\n", "preamble"))
		for range g.IntN(4) {
			b.WriteString(g.one("", "\r\n", "\r\n") + "--" + boundary + g.one("", "", "", " ", "x", "\t  ", "-") + g.one("\r\n", "\r\n", "\r\n", "\r\n", ""))
			b.WriteString(g.part(depth - 1))
		}
		if !g.rarely() {
			b.WriteString("\r\n--" + boundary + "--" + g.one("", "\r\n", "\r\n", "x\r\n"))
		}
		b.WriteString(g.one("", "", "\r\n", "epilogue\r\n", "epilogue"))
		if !g.rarely() {
			g.boundaries = g.boundaries[:len(g.boundaries)-1]
		}
	default:
		b.WriteString(g.message(depth - 1))
	}
	return b.String()
}

func (g *generator) params() string {
	if g.rarely() { // alone, because Dovecot gives name* the number of the piece before it
		return g.one("; name*=utf-8''%41", "; name*=\"\"", ";name* = x")
	}
	var b strings.Builder
	for range g.IntN(4) {
		b.WriteString(g.one("; ", ";", ";\r\n ", " ; ", ";;", " ") + g.one("charset", "CharSet", "name", "name*0", "name*1", "name*0*", "name*1*", "x", "name*2", "na me", "", "name*x", "name*01") + g.one("=", "=", "=", " = ", "==", "") +
			g.one("utf-8", "us-ascii", "\"quoted value\"", "\"esc\\\"aped\"", "\"open", "a.b", "", "\"\"", "utf-8''%41", "50%", "ä", "a/b", "\"fold\r\n ed\"", "=?utf-8?Q?x?=", "x (comment)"))
	}
	return b.String()
}

func (g *generator) body() string {
	var b strings.Builder
	for range g.IntN(5) {
		b.WriteString(g.one("a line", "", "--", "-- ", "--x", "another: line", ".", "SGVsbG8=", "=41=", "ä") + g.one("\r\n", "\r\n", "\r\n", ""))
	}
	if len(g.boundaries) > 0 && g.rarely() {
		b.WriteString(g.one("", "\r\n") + "--" + g.one(g.boundaries...) + g.one("", "--", "x") + "\r\n")
	}
	return b.String()
}

// generate returns the message of a seed.
func generate(seed uint64) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	return []byte(g.message(g.IntN(4)))
}
