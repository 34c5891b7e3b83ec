package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// newMailing returns a mailing with every optional header.
func newMailing(t tester, src Source, data string) MailBatch {
	t.Helper()
	if src.Name == "" {
		src.Name = "quake"
	}
	if src.Subject == "" {
		src.Subject = "Hello"
	}
	template, err := Compile(src)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	return MailBatch{
		Template: template,
		From:     mail.Address{Name: "Earthquake Watch", Address: "quakes@example.org"},
		ReplyTo:  "Info <info@example.org>",
		Sender:   "bounces@example.org",
		Domain:   "example.org",
		Event: &fanfare.Event{ID: "us2000crkq", Source: "/usgs", Type: "earthquake", Time: at,
			Data: json.RawMessage(data)},
		EventRef: fanfare.EventRef{Day: fanfare.DayOf(at), Seq: fanfare.NewEventSeq(1, 1)},
		Topic:    "earthquake", Service: "earthquakes",
		ListID: "earthquakes.example.org",
		UnsubscribeURL: func(dst []byte, r *Recipient) []byte {
			return append(append(dst, "https://example.org/u/"...), r.ID...)
		},
		UnsubscribeMailto: "leave@example.org",
	}
}

func newRecipient() *Recipient {
	at := time.Date(2026, 11, 20, 9, 30, 1, 0, time.UTC)
	return &Recipient{
		Delivery: fanfare.DeliveryRef{Day: fanfare.DayOf(at), Manifest: fanfare.NewManifestID(fanfare.NewEventSeq(1, 1), 3), Position: 17},
		Address:  "ada@example.net", ID: "person-1", Locale: "en", TimeZone: "Europe/London",
		Attributes: json.RawMessage(`{"name":"Ada & Co","tags":["a","b"],"age":36}`),
		Subscriptions: []Subscription{
			{ID: "sub-1c00004e", Rule: "near", Params: json.RawMessage(`{"place":"Alaska","min_mag":4.50}`),
				Data: json.RawMessage(`{"link":"https://example.com/?a=1&b=2","note":null}`)},
			{ID: "sub-1c00004f", Data: json.RawMessage(`{"link":"https://example.com/second"}`)},
		},
		Date: at,
	}
}

func write(t tester, m MailBatch, r *Recipient) driver.Message {
	t.Helper()
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	message, out, err := w.Write(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(message.Body, out) {
		t.Fatal("the message's body is not what was appended")
	}
	return message
}

// A parsed message, as the standard library reads it.
type parsed struct {
	header mail.Header
	count  int               // header fields
	parts  map[string]string // media type -> decoded text, LF line ends
}

// parse reads a message with net/mail and mime/multipart, and again with
// go-message, and fails where they disagree or a rule of the formats is broken.
func parse(t tester, raw []byte) parsed {
	t.Helper()
	head, _, ok := strings.Cut(string(raw), "\r\n\r\n")
	if !ok {
		t.Fatalf("no end of header in %q", raw)
	}
	p := parsed{parts: map[string]string{}}
	for line := range strings.SplitSeq(head, "\r\n") {
		if line == "" || line[0] != ' ' && line[0] != '\t' {
			p.count++
		}
		if len(line) > maxLine || strings.ContainsAny(line, "\r\n\x00") || strings.TrimSpace(line) == "" {
			t.Fatalf("bad header line %q", line)
		}
	}
	for line := range strings.SplitSeq(string(raw), "\r\n") {
		if len(line) > maxLine || strings.ContainsAny(line, "\r\n\x00") {
			t.Fatalf("bad line %q", line)
		}
	}
	if !bytes.HasSuffix(raw, []byte("\r\n")) {
		t.Fatal("the message does not end with CRLF")
	}
	for _, c := range raw[len(head):] {
		if c >= 0x80 {
			t.Fatal("the body is not 7bit")
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	p.header = m.Header
	mediaType, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	if mediaType == "multipart/alternative" {
		for r := multipart.NewReader(m.Body, params["boundary"]); ; {
			part, err := r.NextRawPart()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %q", err, raw)
			}
			p.part(t, part.Header.Get("Content-Type"), part.Header.Get("Content-Transfer-Encoding"), part)
		}
	} else {
		p.part(t, m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), m.Body)
	}
	p.compare(t, raw)
	return p
}

func (p *parsed) part(t tester, contentType, encoding string, body io.Reader) {
	t.Helper()
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["charset"] != "utf-8" {
		t.Fatalf("%q: %v", contentType, err)
	}
	switch encoding {
	case "quoted-printable":
		raw, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(raw), "\r\n") {
			if len(line) > maxEncodedLine {
				t.Fatalf("quoted-printable line of %d bytes", len(line))
			}
		}
		body = quotedprintable.NewReader(bytes.NewReader(raw))
	case "7bit":
	default:
		t.Fatalf("encoding %q", encoding)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	p.parts[mediaType] = strings.ReplaceAll(string(text), "\r\n", "\n")
}

// compare reads the message with go-message and expects the same texts.
func (p *parsed) compare(t tester, raw []byte) {
	t.Helper()
	e, err := message.Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("go-message: %v", err)
	}
	check := func(e *message.Entity) {
		mediaType, _, _ := e.Header.ContentType()
		text, err := io.ReadAll(e.Body)
		if err != nil {
			t.Fatalf("go-message: %v", err)
		}
		if got := strings.ReplaceAll(string(text), "\r\n", "\n"); strings.TrimRight(got, "\n") != strings.TrimRight(p.parts[mediaType], "\n") {
			t.Fatalf("go-message reads %q, the standard library %q", got, p.parts[mediaType])
		}
	}
	r := e.MultipartReader()
	if r == nil {
		check(e)
		return
	}
	for n := 0; ; n++ {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			if n != len(p.parts) {
				t.Fatalf("go-message reads %d parts, the standard library %d", n, len(p.parts))
			}
			return
		}
		if err != nil {
			t.Fatalf("go-message: %v", err)
		}
		check(part)
	}
}

func (p parsed) subject(t tester) string {
	t.Helper()
	s, err := new(mime.WordDecoder).DecodeHeader(p.header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tester has the methods of a test that the fixtures need. rapid.T has them too.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Line lengths of RFC 5322, section 2.1.1, and of RFC 2047, section 2, without CRLF.
const (
	maxLine        = 998
	wantedLine     = 78
	maxEncodedLine = 76
)

func isPlainASCII[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
