// Package randommail makes random messages, and texts to search in them, for the tests that compare searches with and without the index.
//
// State. A Source is a stream of random numbers.
//
// Failure. None.
package randommail

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"mime"
	"mime/quotedprintable"
	"strings"
)

// A Source makes messages. It is for one goroutine.
type Source struct{ *rand.Rand }

// New returns a source whose messages follow from a seed.
func New(seed uint64) Source { return Source{rand.New(rand.NewPCG(seed, 1))} }

var words = strings.Fields("alpha Beta GAMMA gamma-ray betamax straße STRASSE weiß İstanbul istanbul ısparta ISPARTA café cafe\u0301 Ünïcode naïve Ωmega ωμέγα ΣΊΣΥΦΟΣ σίσυφος " +
	"ПРИВЕТ привет мир 漢字テスト かな ﾊﾟｰﾄ 한국어 각 ﬁnance 😀😃 👩🏽‍💻 x\u0323\u0301y ᾳδω 10€ a.b@example.org tele\u00adphone zero\u200bwidth &amp; <tag> =3D =?x?= \"quoted\" 'single'")

func (s Source) word() string { return words[s.IntN(len(words))] }

func (s Source) text(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString([]string{" ", " ", " ", "  ", "\r\n", "\t", "\u00a0", ", "}[s.IntN(8)])
		}
		b.WriteString(s.word())
	}
	return b.String()
}

// Message returns a message with several fields and parts, in several character sets and encodings.
func (s Source) Message() []byte {
	var b strings.Builder
	field := func(text string) string {
		switch s.IntN(4) {
		case 0:
			return text // 8 bit
		case 1:
			return mime.BEncoding.Encode("utf-8", text)
		}
		return mime.QEncoding.Encode("utf-8", text)
	}
	one := func(text string) string { return strings.NewReplacer("\r\n", " ", "\t", " ").Replace(text) }
	fmt.Fprintf(&b, "From: %s <a%d@example.org>\r\nTo: %s <%s@example.net>, b@example.com\r\n", field(s.word()), s.IntN(9), field(s.word()), []string{"ann", "BOB", "Cleo"}[s.IntN(3)])
	fmt.Fprintf(&b, "Subject: %s\r\nX-Note: %s\r\n", field(one(s.text(1+s.IntN(5)))), one(s.text(1+s.IntN(3))))
	s.part(&b, 0)
	return []byte(b.String())
}

// part writes the fields and the body of a part.
func (s Source) part(b *strings.Builder, depth int) {
	if depth < 2 && s.IntN(3) == 0 {
		boundary := fmt.Sprintf("b%d", depth)
		fmt.Fprintf(b, "Content-Type: multipart/%s; boundary=%s\r\n\r\n", []string{"mixed", "alternative", "related"}[s.IntN(3)], boundary)
		for range 1 + s.IntN(3) {
			fmt.Fprintf(b, "--%s\r\nContent-Description: %s\r\n", boundary, s.word())
			s.part(b, depth+1)
			b.WriteString("\r\n")
		}
		fmt.Fprintf(b, "--%s--\r\n", boundary)
		return
	}
	text, kind, charset := s.text(s.IntN(15)), "text/plain", "utf-8"
	switch s.IntN(8) {
	case 0, 1:
		kind = "text/html"
		text = "<html><head><title>" + s.word() + "</title><style>p{}</style></head><p>" + strings.ReplaceAll(text, ", ", "</p><b>") + "al<i>pha</i></b>"
	case 2:
		kind, text = "message/rfc822", "Subject: "+s.word()+"\r\n\r\n"+text
	case 3:
		kind = "application/octet-stream"
	case 4:
		charset = "iso-8859-1"
		text = "caf\xe9 stra\xdfe \xff " + s.word()
	case 5:
		charset = "windows-1251"
		text = "\xcf\xd0\xc8\xc2\xc5\xd2 \xef\xf0\xe8\xe2\xe5\xf2"
	}
	encoding := []string{"8bit", "base64", "quoted-printable"}[s.IntN(3)]
	if kind == "message/rfc822" {
		encoding = "8bit"
	}
	fmt.Fprintf(b, "Content-Type: %s; charset=%s\r\nContent-Transfer-Encoding: %s\r\n\r\n", kind, charset, encoding)
	switch encoding {
	case "base64":
		b.WriteString(base64.StdEncoding.EncodeToString([]byte(text)))
	case "quoted-printable":
		w := quotedprintable.NewWriter(b)
		_, _ = w.Write([]byte(text)) // a Builder does not fail
		_ = w.Close()
	default:
		b.WriteString(text)
	}
}

// Pattern returns a text that a search may find: words, and parts of words and of their neighbors.
func (s Source) Pattern() string {
	text := []rune(strings.NewReplacer("\r\n", " ", "\t", " ", "\"", "", "'", "").Replace(s.text(1 + s.IntN(3))))
	if len(text) == 0 {
		return "alpha"
	}
	from := 0
	if s.IntN(2) == 0 {
		from = s.IntN(len(text))
	}
	pattern := string(text[from:min(len(text), from+1+s.IntN(14))])
	switch s.IntN(5) {
	case 0:
		return strings.ToUpper(pattern)
	case 1:
		return strings.ToLower(pattern)
	}
	return pattern
}
