package mime

import (
	"bytes"
	"mime"
	"net/textproto"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/emersion/go-message"
	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

func FuzzFileName(f *testing.F) {
	for _, name := range []string{"a.pdf", "ü.pdf", `a"b\c.pdf`, "a'b*c%d.pdf", strings.Repeat("long", 30) + ".pdf", "😀.png", "=?utf-8?q?a?="} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) { nameIsRead(t, name) })
}

func nameIsRead(t interface {
	Fatalf(format string, args ...any)
}, name string) {
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return
	}
	made := appendFile(nil, &fanfare.File{Name: name, Type: "application/pdf"}, nil)
	header, err := message.Read(bytes.NewReader(made))
	if err != nil {
		t.Fatalf("%v in %q", err, made)
	}
	for line := range strings.SplitSeq(string(made), "\r\n") {
		if len(line) > softLine || !isASCII(line) {
			t.Fatalf("line %q", line)
		}
	}
	h := textproto.MIMEHeader{}
	for fields := header.Header.Fields(); fields.Next(); {
		h.Add(fields.Key(), fields.Value())
	}
	if len(h) != 3 {
		t.Fatalf("%d header fields of %q", len(h), made)
	}
	_, params, err := mime.ParseMediaType(h.Get("Content-Disposition"))
	if err != nil || params["filename"] != name {
		t.Fatalf("%q: %q, %v", name, params["filename"], err)
	}
	if _, params, err = mime.ParseMediaType(h.Get("Content-Type")); err != nil || len(params["name"]) > plainNameBytes || params["name"] == "" {
		t.Fatalf("%q: %q, %v", name, params["name"], err)
	}
}

// TestFileNamesRoundTrip writes names and reads them again by RFC 2231.
func TestFileNamesRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { nameIsRead(rt, rapid.StringN(1, 80, 250).Draw(rt, "name")) })
}
