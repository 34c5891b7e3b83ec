package compose

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strconv"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/jmap/header"
)

func markers() func() string {
	n := 0
	return func() string { n++; return "=_marker" + strconv.Itoa(n) }
}

// read reads a message with the standard library.
func read(t testing.TB, text []byte) *mail.Message {
	t.Helper()
	for line := range strings.SplitSeq(string(text), "\r\n") {
		if len(line) > maxLine || strings.ContainsAny(line, "\r\n") {
			t.Fatalf("bad line %.200q", line)
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return m
}

func decoded(t testing.TB, encoding string, body io.Reader) string {
	t.Helper()
	switch encoding {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTextsOfFieldsSurvive(t *testing.T) {
	for _, text := range []string{
		"Dinner on Thursday?", "Käse und Brötchen für alle, die heute kommen, und noch viel mehr Text, damit es mehrere Wörter werden", "=?utf-8?Q?not_encoded?=",
		strings.Repeat("x", 2000), strings.Repeat("word ", 100) + "end", "two  spaces", " leading", "😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀", "trailing ",
	} {
		m := read(t, Message([]Field{{"Subject", Text(text)}}, &Part{Type: "text/plain", IsUTF8Text: true}, markers()))
		got, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		if err != nil || got != text {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
	}
}

func TestValuesAddNoField(t *testing.T) {
	evil := "x\r\nBcc: victim@example.org\r\n\r\nbody\n\rX: y"
	m := read(t, Message([]Field{
		{"Subject", Text(evil)}, {"To", Addresses([]header.Address{{Name: &evil, Email: "a@b.org\r\nX-A: b"}})}, {"X-Raw", evil},
		{"References", MessageIDs([]string{"a@b>\r\nX-B: c"})},
	}, &Part{Type: "text/plain", Parameters: Parameter("name", evil), IsUTF8Text: true, Fields: []Field{{"Content-Disposition", "attachment" + Parameter("filename", evil)}}}, markers()))
	if len(m.Header) != 8 {
		t.Errorf("the header is %v", m.Header)
	}
	if body, _ := io.ReadAll(m.Body); len(body) != 0 {
		t.Errorf("the body is %q", body)
	}
}

func TestAddressesSurvive(t *testing.T) {
	names := []string{"James Smythe", `Quote "this" \ and (that)`, "Jürgen Groß", "a, b; c: d", "=?x", strings.Repeat("lang ", 60) + "ä"}
	var list []header.Address
	for i := range names {
		list = append(list, header.Address{Name: &names[i], Email: "p" + strconv.Itoa(i) + "@example.org"})
	}
	list = append(list, header.Address{Email: "last@example.org"})
	m := read(t, Message([]Field{{"To", Addresses(list)}}, &Part{Type: "text/plain"}, markers()))
	got, err := m.Header.AddressList("To")
	if err != nil || len(got) != len(list) {
		t.Fatalf("%v, %v", got, err)
	}
	for i, a := range got {
		want := ""
		if list[i].Name != nil {
			want = *list[i].Name
		}
		if a.Name != want || a.Address != list[i].Email {
			t.Errorf("got %q %q, want %q", a.Name, a.Address, want)
		}
	}
	group := "Friends & Co"
	m = read(t, Message([]Field{{"To", Groups([]header.Group{{Name: &group, Addresses: list[:2]}, {Addresses: list[6:]}})}}, &Part{Type: "text/plain"}, markers()))
	if got, err := m.Header.AddressList("To"); err != nil || len(got) != 3 {
		t.Errorf("group: %v, %v", got, err)
	}
}

func TestFileNamesSurvive(t *testing.T) {
	for _, name := range []string{"a.pdf", "two words.pdf", `q"uo\te.txt`, "größe.pdf", strings.Repeat("lang ü ", 40) + ".txt"} {
		m := read(t, Message(nil, &Part{Type: "application/pdf", Fields: []Field{{"Content-Disposition", "attachment" + Parameter("filename", name)}}, Body: []byte("x")}, markers()))
		_, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Disposition"))
		if err != nil || parameters["filename"] != name {
			t.Errorf("got %q, %v, want %q", parameters["filename"], err, name)
		}
	}
}

func TestBodiesSurvive(t *testing.T) {
	bodies := map[string]struct {
		part Part
		want string
	}{
		"ascii":      {Part{Type: "text/plain", IsUTF8Text: true, Body: []byte("a\nb\r\nc\rd")}, "a\r\nb\r\nc\r\nd"},
		"utf-8":      {Part{Type: "text/plain", IsUTF8Text: true, Body: []byte("Grüße = 1 \n\tx\t\nend ")}, "Grüße = 1 \r\n\tx\t\r\nend "},
		"long line":  {Part{Type: "text/html", IsUTF8Text: true, Body: []byte(strings.Repeat("x", 5000))}, strings.Repeat("x", 5000)},
		"binary":     {Part{Type: "image/png", Body: []byte("\x00\r\n\xff\n")}, "\x00\r\n\xff\n"},
		"other text": {Part{Type: "text/plain", Parameters: Parameter("charset", "iso-8859-1"), Body: []byte("\xfc")}, "\xfc"},
	}
	for name, c := range bodies {
		single := c.part
		m := read(t, Message([]Field{{"Date", Date(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))}}, &single, markers()))
		if got := decoded(t, m.Header.Get("Content-Transfer-Encoding"), m.Body); got != c.want {
			t.Errorf("%s: got %q", name, got)
		}
		inner := c.part
		m = read(t, Message(nil, &Part{Type: "multipart/mixed", Children: []*Part{{Type: "multipart/alternative", Children: []*Part{&inner}}, {Type: "text/plain", Body: []byte("last")}}}, markers()))
		_, parameters, _ := mime.ParseMediaType(m.Header.Get("Content-Type"))
		outer := multipart.NewReader(m.Body, parameters["boundary"])
		first, err := outer.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		_, parameters, _ = mime.ParseMediaType(first.Header.Get("Content-Type"))
		part, err := multipart.NewReader(first, parameters["boundary"]).NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		if got := decoded(t, part.Header.Get("Content-Transfer-Encoding"), part); got != c.want {
			t.Errorf("%s in a multipart: got %q", name, got)
		}
		last, err := outer.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		if got := decoded(t, last.Header.Get("Content-Transfer-Encoding"), last); got != "last" {
			t.Errorf("%s: the last part is %q", name, got)
		}
	}
}
