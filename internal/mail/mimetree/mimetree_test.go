package mimetree

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const sample = "Date: Fri, 27 Nov 2026 12:00:00 +0000\r\n" +
	"From: =?utf-8?Q?J=C3=B6?= Doe <joe@example.org>\r\n" +
	"To: Friends: Ann <ann@example.org>, bob@example.org;, \"Carl, C.\" <carl@[10.0.0.1]>\r\n" +
	"Subject: =?utf-8?Q?a?=\r\n =?utf-8?Q?b?=\r\n" +
	"Message-ID: <1@example.org>\r\n" +
	"MIME-Version: 1.0\r\n" +
	"Content-Type: multipart/mixed; boundary=outer\r\n\r\n" +
	"preamble\r\n" +
	"--outer\r\n" +
	"Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
	"gr=FC=DFe =\r\nund mehr\r\n" +
	"--outer\r\n" +
	"Content-Type: message/rfc822\r\n\r\n" +
	"From: inner@example.org\r\nContent-Type: multipart/alternative; boundary=inner\r\n\r\n" +
	"--inner\r\n\r\none\r\n--inner\r\nContent-Type: text/html\r\n\r\n<p>two</p>\r\n--inner--\r\n" +
	"--outer\r\n" +
	"Content-Type: application/pdf; name*0=\"a \"; name*1=b.pdf\r\nContent-Transfer-Encoding: base64\r\n" +
	"Content-Disposition: attachment; filename*=utf-8''%C3%A4.pdf\r\nContent-ID: <x@y>\r\n\r\n" +
	"aGVs\r\nbG8=\r\n" +
	"--outer--\r\nepilogue\r\n"

func TestThePartsOfAMessageAreFound(t *testing.T) {
	m := []byte(sample)
	root := Parse(m)
	body := func(p *Part) string { return string(m[p.Body.From:p.Body.To]) }
	if !root.IsMultipart() || len(root.Children) != 3 {
		t.Fatalf("the root is %s/%s with %d children", root.Type, root.Subtype, len(root.Children))
	}
	text, message, pdf := root.Children[0], root.Children[1], root.Children[2]
	if got := body(text); got != "gr=FC=DFe =\r\nund mehr" || text.Lines != 1 {
		t.Errorf("the text is %q with %d lines", got, text.Lines)
	}
	if got := Text(text, m); got != "grüße und mehr" {
		t.Errorf("the decoded text is %q", got)
	}
	if !message.IsMessage() || len(message.Children[0].Children) != 2 || message.Children[0].Envelope.From[0].Mailbox != "inner" {
		t.Fatalf("the message in the message is %+v", message.Children)
	}
	if got := body(message.Children[0].Children[1]); got != "<p>two</p>" {
		t.Errorf("the inner part is %q", got)
	}
	if decoded, err := Decode(pdf, m); err != nil || string(decoded) != "hello" {
		t.Errorf("the file is %q, %v", decoded, err)
	}
	if pdf.Filename() != "ä.pdf" || pdf.Param("name") != "a b.pdf" || pdf.ID != "<x@y>" {
		t.Errorf("the file has the properties %+v", pdf)
	}
	e := root.Envelope
	if e.Subject != "=?utf-8?Q?a?= =?utf-8?Q?b?=" || DecodeHeader(e.Subject) != "ab" || e.MessageID != "<1@example.org>" {
		t.Errorf("the envelope is %+v", e)
	}
	want := []Address{{Mailbox: "Friends", Group: GroupBegin}, {Name: "Ann", Mailbox: "ann", Host: "example.org"}, {Mailbox: "bob", Host: "example.org"}, {Group: GroupEnd},
		{Name: "Carl, C.", Mailbox: "carl", Host: "[10.0.0.1]"}}
	if !reflect.DeepEqual(e.To, want) {
		t.Errorf("the addresses are %+v", e.To)
	}
	if !reflect.DeepEqual(e.Sender, e.From) || !reflect.DeepEqual(e.ReplyTo, e.From) {
		t.Error("Sender and Reply-To are not From")
	}
	if e.Present.Has(HasInReplyTo) || !e.Present.Has(HasDate|HasSubject|HasMessageID) {
		t.Errorf("the fields of the envelope are %b", e.Present)
	}
}

func TestFieldsKeepTheirBytes(t *testing.T) {
	header := "A: one\r\nB : two\r\n\tfolded\r\nno colon\r\nC:\r\n\r\nD: body\r\n"
	var names, values []string
	var raw strings.Builder
	for f := range Fields([]byte(header)) {
		names, values = append(names, f.Name), append(values, string(f.Value))
		raw.Write(f.Raw)
	}
	if want := []string{"A", "B", "no colon", "C"}; !reflect.DeepEqual(names, want) {
		t.Errorf("the names are %q", names)
	}
	if want := []string{" one", " two\r\n\tfolded", "", ""}; !reflect.DeepEqual(values, want) {
		t.Errorf("the values are %q", values)
	}
	if raw.String() != strings.TrimSuffix(header, "\r\nD: body\r\n") {
		t.Errorf("the bytes are %q", raw.String())
	}
}

func TestEncodingsAreDecoded(t *testing.T) {
	for _, c := range []struct{ encoding, body, want string }{
		{"", "as it is", "as it is"},
		{"8bit", "ä", "ä"},
		{"BASE64", "aGVs!bG8=trailing", "hello"},
		{"base64", "aGVsb", "hel"},
		{"quoted-printable", "a=3Db=\r\nc  \r\n=zz=", "a=bc\r\n=zz"},
	} {
		p := &Part{Body: Range{0, int64(len(c.body))}, Encoding: c.encoding}
		if got, err := Decode(p, []byte(c.body)); err != nil || string(got) != c.want {
			t.Errorf("%s %q is %q, %v", c.encoding, c.body, got, err)
		}
	}
	if _, err := Decode(&Part{Encoding: "x-uuencode"}, nil); !errors.Is(err, ErrUnknownEncoding) {
		t.Errorf("an unknown encoding gives %v", err)
	}
}

func TestHeaderTextIsDecoded(t *testing.T) {
	for value, want := range map[string]string{
		"plain":                           "plain",
		"a\r\n b":                         "a b",
		"=?utf-8?B?w6Q=?=":                "ä",
		"=?UTF-8?q?a_b?= c":               "a b c",
		"=?utf-8?Q?a?= =?utf-8?Q?b?=":     "ab",
		"=?utf-8?Q?=C3?= =?utf-8?Q?=A4?=": "ä",
		"=?iso-8859-1*de?Q?=E4?= x":       "ä x",
		"=?x-unknown?Q?a?=":               "a",
		"=?broken":                        "=?broken",
		"=?utf-8?X?a?=":                   "=?utf-8?X?a?=",
		"x =?utf-8?Q?y?= z":               "x y z",
		"\xff":                            "\ufffd",
	} {
		if got := DecodeHeader(value); got != want {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
	}
}

func TestBinaryFormReturnsTheSameTree(t *testing.T) {
	for seed := range uint64(500) {
		checkBinary(t, Parse(generate(seed)))
	}
	p := Parse([]byte(sample))
	b := p.Append(nil)
	t.Logf("the tree of a message with %d bytes and 7 parts has %d bytes", len(sample), len(b))
	for i := range b {
		_, _ = Read(b[:i])
		if other, err := Read(append(bytes.Clone(b[:i]), append([]byte{b[i] ^ 0x80}, b[i+1:]...)...)); err == nil && other == nil {
			t.Fatalf("a broken byte %d gives neither a tree nor an error", i)
		}
	}
}

func checkBinary(t *testing.T, p *Part) {
	t.Helper()
	again, err := Read(p.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, again) {
		t.Fatalf("the tree\n%+v\nbecame\n%+v", p, again)
	}
}

func TestHostileMessagesHaveBoundedTrees(t *testing.T) {
	var nested strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&nested, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	for name, m := range map[string]string{
		"deep multiparts": nested.String(),
		"deep messages":   strings.Repeat("Content-Type: message/rfc822\r\n\r\n", 5000),
		"many parts":      "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\n", 50_000),
		"many addresses":  "To: " + strings.Repeat("a@b,", 100_000) + "\r\n\r\n",
		"many parameters": "Content-Type: a/b" + strings.Repeat("; x=y", 12_000) + "\r\n\r\n",
		"pieces":          "Content-Type: a/b; x*999999999=1; x*00000000000001=2; x*0*=3\r\n\r\n",
		"nested comments": "To: " + strings.Repeat("(", 60_000) + "\r\n\r\n",
		"open quotes":     "To: " + strings.Repeat("\"a\\", 20_000) + "\r\n\r\n",
		"a long header":   strings.Repeat("X: y\r\n", 500_000) + "\r\n",
		"dashes":          "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--\r\n", 500_000),
		"nothing":         "",
		"one line end":    "\n",
		"only NUL":        "Subject: \x00\r\nContent-Type: a/\x00b\r\n\r\n\x00",
		"groups":          "To: " + strings.Repeat("a:", 30_000) + "\r\n\r\n",
	} {
		checkTree(t, name, []byte(m))
	}
}

// checkTree checks that ranges are in order and inside of the message, that numbers are bounded, and that the binary form returns the tree.
func checkTree(t *testing.T, name string, m []byte) {
	t.Helper()
	root := Parse(m)
	parts := 0
	var check func(p *Part, from, to int64, depth int)
	check = func(p *Part, from, to int64, depth int) {
		if parts++; parts > maxParts || depth > maxDepth {
			t.Fatalf("%s: %d parts, depth %d", name, parts, depth)
		}
		if p.Header.From < from || p.Header.To < p.Header.From || p.Body.From != p.Header.To || p.Body.To < p.Body.From || p.Body.To > to {
			t.Fatalf("%s: header %v and body %v in %d to %d of %q", name, p.Header, p.Body, from, to, m)
		}
		if want := int64(bytes.Count(m[p.Body.From:p.Body.To], []byte("\n"))); p.Lines != want {
			t.Fatalf("%s: %d lines, want %d", name, p.Lines, want)
		}
		_, _ = Decode(p, m)
		_ = Text(p, m)
		_ = DecodeHeader(p.Description)
		_ = p.Filename()
		at := p.Body.From
		for _, child := range p.Children {
			check(child, at, p.Body.To, depth+1)
			at = child.Body.To
		}
	}
	check(root, 0, int64(len(m)), 0)
	if root.Header.From != 0 || root.Body.To != int64(len(m)) || root.Envelope == nil {
		t.Fatalf("%s: the root is %+v", name, root)
	}
	checkBinary(t, root)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	for seed := range uint64(50) {
		f.Add(generate(seed))
	}
	f.Fuzz(func(t *testing.T, m []byte) {
		checkTree(t, "fuzz", m)
		for field := range Fields(m) {
			_ = DecodeHeader(string(field.Value))
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(Parse([]byte(sample)).Append(nil))
	for seed := range uint64(20) {
		f.Add(Parse(generate(seed)).Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := Read(b); err == nil {
			if again, err := Read(p.Append(nil)); err != nil || !reflect.DeepEqual(p, again) {
				t.Fatalf("the tree changed: %v", err)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	m := []byte("Received: from a by b\r\n with c; Fri, 27 Nov 2026 12:00:00 +0000\r\n" + sample[:strings.Index(sample, "gr=FC")] +
		strings.Repeat(strings.Repeat("x", 70)+"\r\n", 280) + sample[strings.Index(sample, "gr=FC"):])
	b.SetBytes(int64(len(m)))
	b.ReportAllocs()
	for b.Loop() {
		Parse(m)
	}
}

func BenchmarkRead(b *testing.B) {
	stored := Parse([]byte(sample)).Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Read(stored)
	}
}
