//go:build peers

package imaporacle

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// message returns the message of a seed. It has a Date with a time zone of its own, so that searches for sent messages have an answer.
func message(seed uint64) string {
	w := messageWriter{rand.New(rand.NewPCG(seed, 2))}
	var b strings.Builder
	fmt.Fprintf(&b, "Date: %s\r\n", w.date())
	w.fields(&b)
	w.entity(&b, 1+w.IntN(3))
	return b.String()
}

type messageWriter struct{ *rand.Rand }

func (w messageWriter) one(all ...string) string { return all[w.IntN(len(all))] }

func (w messageWriter) date() string {
	return fmt.Sprintf("%d %s %d %02d:%02d:%02d %s", 1+w.IntN(28), w.one("Jan", "Feb", "Nov"), 2019+w.IntN(3), w.IntN(24), w.IntN(60), w.IntN(60), w.one("+0000", "+0200", "-0500"))
}

// fields writes the fields of a message that are not about its content.
func (w messageWriter) fields(b *strings.Builder) {
	for _, f := range [][]string{
		{"From", "Ann Example <ann@example.org>", "bob@example.com", "\"Doe, Joe\" <joe@example.net>", "=?utf-8?Q?J=C3=B6rg?= <joerg@example.org>"},
		{"Sender", "ann@example.org", "Office <office@example.org>"},
		{"Reply-To", "replies@example.org"},
		{"To", "carl@example.org, Dora <dora@example.org>", "Team: eve@example.org, fred@example.org;", "undisclosed-recipients:;", "<@relay.example:gus@example.org>"},
		{"Cc", "hal@example.org (Hal in a comment)", "ida@example.org,\r\n\tjan@example.org"},
		{"Bcc", "kim@example.org"},
		{"Subject", "Report", "Re: report of the week", "=?utf-8?B?R3LDvMOfZQ==?=", "a folded\r\n subject", "\"quoted\" and back\\slash", ""},
		{"Message-ID", fmt.Sprintf("<%d@example.org>", w.IntN(1000))},
		{"In-Reply-To", "<first@example.org>"},
		{"X-Odd", "one", "two\r\n  lines", "", "Gr\xc3\xbc\xc3\x9fe"},
		{"x-odd", "lower case"},
	} {
		if w.IntN(5) > 1 {
			b.WriteString(f[0] + ": " + w.one(f[1:]...) + "\r\n")
		}
	}
	if w.IntN(4) > 0 {
		b.WriteString("MIME-Version: 1.0\r\n")
	}
}

// entity writes the fields about the content, an empty line, and the content.
func (w messageWriter) entity(b *strings.Builder, depth int) {
	kind := w.IntN(10)
	if depth == 0 {
		kind %= 6
	}
	if w.IntN(6) == 0 {
		b.WriteString("Content-Description: a part\r\n")
	}
	if w.IntN(6) == 0 {
		fmt.Fprintf(b, "Content-ID: <part%d@example.org>\r\n", w.IntN(100))
	}
	switch kind {
	case 0:
		b.WriteString("\r\n" + w.text())
	case 1, 2:
		b.WriteString("Content-Type: text/plain; charset=" + w.one("us-ascii", "utf-8", "\"UTF-8\"") + "\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" + w.text())
	case 3:
		b.WriteString("Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>Caf=C3=A9 =\r\nbanana</p>\r\n")
	case 4:
		b.WriteString("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: inline\r\nContent-Language: de, en\r\n\r\nR3LDvMOfZSBiYW5hbmE=\r\n")
	case 5:
		b.WriteString("Content-Type: application/octet-stream; name=\"a b.bin\"\r\nContent-Disposition: attachment; filename=\"a b.bin\"\r\nContent-Transfer-Encoding: base64\r\n\r\nAAECAwQF\r\n")
	case 6, 7, 8:
		boundary := fmt.Sprintf("=_%d_%d", depth, w.IntN(1000))
		fmt.Fprintf(b, "Content-Type: multipart/%s; boundary=\"%s\"\r\n\r\n%s", w.one("mixed", "alternative", "related"), boundary, w.one("", "preamble\r\n"))
		for range 1 + w.IntN(3) {
			b.WriteString("\r\n--" + boundary + "\r\n")
			w.entity(b, depth-1)
		}
		b.WriteString("\r\n--" + boundary + "--\r\n" + w.one("", "epilogue\r\n"))
	case 9:
		b.WriteString("Content-Type: message/rfc822\r\n\r\n")
		fmt.Fprintf(b, "Date: %s\r\n", w.date())
		w.fields(b)
		w.entity(b, depth-1)
	}
}

func (w messageWriter) text() string {
	var b strings.Builder
	for range w.IntN(5) {
		b.WriteString(w.one("a line", "the banana is here", "", "Gr\xc3\xbc\xc3\x9fe", "From the start", ". a dot", strings.Repeat("long ", 30)) + "\r\n")
	}
	return b.String()
}
