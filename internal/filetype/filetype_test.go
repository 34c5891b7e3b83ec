package filetype

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	pdf  = "%PDF-1.7\n"
	png  = "\x89PNG\r\n\x1a\n"
	zip  = "PK\x03\x04...."
	exe  = "MZ\x90\x00\x03\x00\x00\x00"
	page = "<!doctype html><script>alert(1)</script>"
)

func TestTypeFollowsNameAndBytes(t *testing.T) {
	for _, c := range []struct{ name, declared, content, want, refused string }{
		{"terms.pdf", "", pdf, "application/pdf", ""},
		{"Terms.PDF", "application/pdf; charset=binary", pdf, "application/pdf", ""},
		{"terms.pdf", "application/octet-stream", pdf, "application/octet-stream", ""},
		{"list.csv", "", "a;b\n", "text/csv", ""},
		{"list.csv", "text/plain", "a;b\n", "text/plain", ""},
		{"letter.docx", "", zip, byExtension["docx"], ""},
		{"README", "", "words\n", "text/plain", ""},
		{"scan", "", pdf, "application/pdf", ""},
		{"blob", "", "\x00\x01", "application/octet-stream", ""},
		{"page.html", "", page, "text/html", ""},
		{"pictures.zip", "", zip, "application/zip", ""},
		{"empty.txt", "", "", "text/plain", ""},
		{"Übersicht 2026.txt", "", "ü", "text/plain", ""},
		{"MZ.txt", "", "MZ is a prefix of calls", "text/plain", ""},

		{"setup.exe", "", exe, "", "are programs"},
		{"setup.EXE", "application/octet-stream", "", "", "are programs"},
		{"invoice.pdf.js", "", "x", "", "are programs"},
		{"invoice.pdf", "", exe, "", "is a program"},
		{"notes.txt", "", "#!/bin/sh\n", "", "is a program"},
		{"notes.txt", "", "#! /usr/bin/env python3\n", "", "is a program"},
		{"data.bin", "", "\x7fELF\x02", "", "is a program"},
		{"terms.pdf", "", "words", "", "but the content has a different format"},
		{"terms.pdf", "", page, "", "but the content has a different format"},
		{"terms.pdf", "text/html", page, "", "the extension indicates application/pdf"},
		{"list.csv", "", page, "", "is HTML"},
		{"notes", "text/plain", page, "", "is HTML"},
		{"photo.png", "", pdf, "", "but the content has a different format"},
		{"photo.png", "image/jpeg", png, "", "the extension indicates image/png"},
		{"list.csv", "", zip, "", "is an archive"},
		{"list.csv", "", pdf, "", "is application/pdf"},
		{"mail.eml", "message/rfc822", "From: x", "", "part of the message"},
		{"x", "multipart/mixed", "", "", "part of the message"},
		{"x.txt", "text/plain\r\nBcc: x", "", "", "not a media type"},
		{"x.txt", "text", "", "", "not a media type"},
		{"", "", "x", "", "no name"},
		{"../x.txt", "", "x", "", "path"},
		{`c:\x.txt`, "", "x", "", "path"},
		{"x.txt\r\nBcc: y", "", "x", "", "invisible characters"},
		{"x\u202etxt.exe", "", "x", "", "invisible characters"},
		{"x\xff.txt", "", "x", "", "invisible characters"},
		{"x.exe.", "", "x", "", "some systems remove"},
		{"x.exe ", "", "x", "", "some systems remove"},
		{"..", "", "x", "", "some systems remove"},
		{strings.Repeat("x", 197) + ".txt", "", "x", "", "longer than 200"},
	} {
		got, err := Policy(nil).Attachment(c.name, c.declared, []byte(c.content))
		if c.refused == "" && (err != nil || got != c.want) || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%q as %q: %s, %v, want %s%s", c.name, c.declared, got, err, c.want, c.refused)
		}
	}
}

func TestOperatorCanAllowPrograms(t *testing.T) {
	allow := Policy{"js", "exe"}
	for name, content := range map[string]string{"a.js": "let x", "a.exe": exe, "blob": exe} {
		if media, err := allow.Attachment(name, "", []byte(content)); err != nil {
			t.Errorf("%s: %s, %v", name, media, err)
		}
	}
	if _, err := allow.Attachment("a.vbs", "", []byte("x")); err == nil {
		t.Error("one that is not listed went through")
	}
}

func TestInlineImageTypes(t *testing.T) {
	for _, c := range []struct{ name, declared, content, want, refused string }{
		{"logo.png", "", png, "image/png", ""},
		{"logo", "image/png", png, "image/png", ""},
		{"logo.jpg", "", "\xff\xd8\xff\xe0", "image/jpeg", ""},
		{"logo.webp", "", "RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp", ""},
		{"logo.gif", "", "GIF89a", "image/gif", ""},
		{"logo.svg", "", "<svg xmlns='http://www.w3.org/2000/svg'/>", "", "do not show files"},
		{"logo.png", "", page, "", "do not show files"},
		{"logo.png", "", "\xff\xd8\xff\xe0", "", "which contradicts"},
		{"logo.png", "image/gif", png, "", "which contradicts"},
		{"logo.riff", "", "RIFF\x00\x00\x00\x00WAVE", "", "do not show files"},
		{"", "", png, "", "no name"},
	} {
		got, err := Image(c.name, c.declared, []byte(c.content))
		if c.refused == "" && (err != nil || got != c.want) || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%q as %q: %s, %v, want %s%s", c.name, c.declared, got, err, c.want, c.refused)
		}
	}
}

func FuzzType(f *testing.F) {
	f.Add("terms.pdf", "application/pdf", []byte(pdf))
	f.Add("a.html", "text/html; charset=utf-8", []byte(page))
	f.Add("x\r\n.js", "a/b\r\n", []byte(exe))
	media := regexp.MustCompile(`^[a-z]+/[a-z0-9!#$&^_.+-]+$`)
	f.Fuzz(func(t *testing.T, name, declared string, content []byte) {
		got, err := Policy(nil).Attachment(name, declared, content)
		if err == nil && (!media.MatchString(got) || !utf8.ValidString(name) || strings.ContainsAny(name, "\r\n\x00/\\")) {
			t.Errorf("%q is %q", name, got)
		}
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Errorf("%q", err)
		}
		if got, err := Image(name, declared, content); err == nil && !strings.HasPrefix(got, "image/") {
			t.Errorf("%q is an image of type %q", name, got)
		}
	})
}
