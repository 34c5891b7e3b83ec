package captured

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// delivery returns the id of the n-th delivery of an event.
func delivery(event, n int) string {
	return fanfare.DeliveryRef{Day: 20777, Manifest: fanfare.NewManifestID(fanfare.EventSeq(event), 0), Position: uint32(n)}.String()
}

// A fixture is a folder of captured messages, and channels with the driver file.
type fixture struct {
	t        *testing.T
	folder   string
	channels []*catalog.Channel
	*Messages
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, folder: t.TempDir()}
	f.Messages = New(Options{Folders: []string{f.folder}, Channels: func() []*catalog.Channel { return f.channels }})
	return f
}

// write writes a message as the driver does.
func (f *fixture) write(path, id, message string) string {
	f.t.Helper()
	if !filepath.IsAbs(path) {
		message = "X-Fanfare-Captured: " + path + "\r\n" + message
		path = filepath.Join(f.folder, path)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, id+".eml"), []byte("Return-Path: <news@example.org>\r\nDelivered-To: ada@example.org\r\n"+message), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return id
}

func (f *fixture) fileChannel(service, name, path string) {
	c := &catalog.Channel{Service: service, Name: name}
	c.Driver, c.Path = "file", path
	f.channels = append(f.channels, c)
}

// ids lists all pages of a list.
func (f *fixture) ids(service string, q httpapi.CapturedQuery) (ids []string) {
	f.t.Helper()
	q.Limit = 3
	for {
		page, next, _, err := f.List(f.t.Context(), service, q)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, m := range page {
			ids = append(ids, m.ID)
		}
		if next == "" {
			return ids
		}
		q.Before = next
	}
}

func (f *fixture) show(id string) wire.CapturedContent {
	f.t.Helper()
	m, err := f.Show(f.t.Context(), "", id)
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

const simple = "From: =?utf-8?q?Caf=C3=A9?= <a@example.org>\r\nTo: ada@example.org\r\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\r\n\r\nHello\r\n"

func TestMessagesAreListedNewestFirst(t *testing.T) {
	f := newFixture(t)
	var want []string
	for event := 1; event <= 12; event++ { // 1, 10 and 2 have another order as text
		want = append(want, f.write([]string{"news/email", "news/sms", "ops/email"}[event%3], delivery(event, event), simple))
	}
	slices.Reverse(want)
	if got := f.ids("", httpapi.CapturedQuery{}); !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
	page, next, searched, err := f.List(t.Context(), "ops", httpapi.CapturedQuery{Limit: 100})
	if err != nil || len(page) != 4 || next != "" || searched != nil {
		t.Fatalf("%d messages, %q, %v, %v", len(page), next, searched, err)
	}
	if m := page[0]; m.Service != "ops" || m.Channel != "email" || m.Kind != "mail" || m.To != "ada@example.org" || m.From != "Café <a@example.org>" || m.Subject != "Grüße" || m.SizeBytes == 0 || m.At.IsZero() {
		t.Errorf("the message is %+v", m)
	}
	if got := f.ids("news", httpapi.CapturedQuery{Channel: "sms"}); len(got) != 4 {
		t.Errorf("of a channel: %v", got)
	}
	for q, want := range map[httpapi.CapturedQuery]int{{Subject: "GRÜ"}: 12, {Subject: "other"}: 0, {Recipient: "ADA@example.org"}: 12, {Recipient: "ada"}: 0, {Channel: "none"}: 0} {
		if got := f.ids("", q); len(got) != want {
			t.Errorf("%+v selects %d messages, want %d", q, len(got), want)
		}
	}
}

func TestAServiceSeesOnlyItsOwn(t *testing.T) {
	f := newFixture(t)
	own, other := f.write("news/email", delivery(1, 1), simple), f.write("ops/email", delivery(2, 1), simple)
	folder, shared := t.TempDir(), t.TempDir()
	f.fileChannel("news", "archive", folder)
	f.fileChannel("news", "both", shared)
	f.fileChannel("ops", "both", shared)
	f.fileChannel("ops", "capture", filepath.Join(f.folder, "news", "email"))
	archived, mixed := f.write(folder, delivery(3, 1), simple), f.write(shared, delivery(4, 1), simple)
	if got, want := f.ids("news", httpapi.CapturedQuery{}), []string{archived, own}; !slices.Equal(got, want) {
		t.Errorf("news sees %v, want %v", got, want)
	}
	if got, want := f.ids("ops", httpapi.CapturedQuery{}), []string{other}; !slices.Equal(got, want) {
		t.Errorf("ops sees %v, want %v", got, want)
	}
	if got, want := f.ids("", httpapi.CapturedQuery{}), []string{mixed, archived, other, own}; !slices.Equal(got, want) {
		t.Errorf("an operator sees %v, want %v", got, want)
	}
	for _, service := range []string{"ops", "none", "..", "../news", ".", "news/email", "/"} {
		if _, err := f.Show(t.Context(), service, own); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("%s sees a message of news: %v", service, err)
		}
		if err := f.Delete(service, own); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("%s deletes a message of news: %v", service, err)
		}
	}
	if err := f.Delete("news", archived); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("the message of an archive is deleted: %v", err)
	}
	if n, err := f.Clear(t.Context(), "news"); n != 1 || err != nil {
		t.Errorf("cleared %d, %v", n, err)
	}
	if got, want := f.ids("", httpapi.CapturedQuery{}), []string{mixed, archived, other}; !slices.Equal(got, want) {
		t.Errorf("after that there are %v, want %v", got, want)
	}
	if err := f.Delete("", other); err != nil {
		t.Error(err)
	}
	if got := f.ids("ops", httpapi.CapturedQuery{}); len(got) != 0 {
		t.Errorf("a deleted message is listed: %v", got)
	}
}

func TestIDsDoNotLeaveTheFolder(t *testing.T) {
	f := newFixture(t)
	id := f.write("news/email", delivery(1, 1), simple)
	secret := filepath.Join(t.TempDir(), "secret.eml")
	if err := os.WriteFile(secret, []byte("Subject: secret\r\n\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(f.folder, "news", "email")
	linked, piped := delivery(2, 1), delivery(3, 1)
	if err := errors.Join(os.Symlink(secret, filepath.Join(folder, linked+".eml")), syscall.Mkfifo(filepath.Join(folder, piped+".eml"), 0o600), os.Mkdir(filepath.Join(folder, delivery(4, 1)+".eml"), 0o700),
		os.Symlink(filepath.Dir(secret), filepath.Join(f.folder, "news", "linked")), os.WriteFile(filepath.Join(folder, ".part-x"), nil, 0o600), os.WriteFile(filepath.Join(folder, "notes.eml"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := f.ids("", httpapi.CapturedQuery{}); !slices.Equal(got, []string{id}) {
		t.Errorf("listed are %v", got)
	}
	for _, wrong := range []string{linked, piped, delivery(4, 1), "", ".", "..", "../" + id, "email/" + id, id + "/", id + "\x00", strings.ToUpper(id), id + ".eml", "dlv-20261120-0" + id[13:], "../../" + filepath.Base(secret), secret, strings.Repeat("../", 1000)} {
		if _, err := f.Show(t.Context(), "", wrong); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("%q: %v", wrong, err)
		}
		if _, _, err := f.Source("", wrong); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("source of %q: %v", wrong, err)
		}
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error(err)
	}
}

const complete = "From: a@example.org\r\nTo: ada@example.org\r\nSubject: Offer\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=M\r\n\r\n" +
	"--M\r\nContent-Type: multipart/related; boundary=R\r\n\r\n" +
	"--R\r\nContent-Type: multipart/alternative; boundary=A\r\n\r\n" +
	"--A\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=FC=DFe\r\n" +
	"--A\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p><a href=\"https://example.org/?a=1&amp;b=2\">More <b>here</b></a> <a href='mailto:b@example.org'><img src='cid:logo' alt='Write'></a><img src=\"CID:logo%40x\"><img src=\"https://tracker.example/x.gif\"></p>\r\n" +
	"--A--\r\n" +
	"--R\r\nContent-Type: image/png; name=logo.png\r\nContent-ID: <logo>\r\nContent-Transfer-Encoding: base64\r\n\r\naW1hZ2U=\r\n--R--\r\n" +
	"--M\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename*=utf-8''..%2F..%2Fetc%2FGr%C3%BC%C3%9Fe%E2%80%AEfdp.exe\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--M--\r\n"

func TestAMessageIsShownWithItsParts(t *testing.T) {
	f := newFixture(t)
	m := f.show(f.write("news/email", delivery(1, 1), complete))
	if m.Text != "Grüße" || !m.HTML || m.TextTruncated || m.Subject != "Offer" {
		t.Errorf("the message is %+v", m)
	}
	var parts []string
	for _, p := range m.Parts {
		parts = append(parts, p.Number+" "+p.Type)
	}
	if want := []string{" multipart/mixed", "1 multipart/related", "1.1 multipart/alternative", "1.1.1 text/plain", "1.1.2 text/html", "1.2 image/png", "2 application/pdf"}; !slices.Equal(parts, want) {
		t.Errorf("the parts are %q, want %q", parts, want)
	}
	if want := []wire.CapturedLink{{URL: "https://example.org/?a=1&b=2", Text: "More here"}, {URL: "mailto:b@example.org", Text: "Write"}}; !slices.Equal(m.Links, want) {
		t.Errorf("the links are %+v, want %+v", m.Links, want)
	}
	if want := []wire.CapturedAttachment{{Number: 1, Name: "logo.png", Type: "image/png", ContentID: "logo", SizeBytes: 5}, {Number: 2, Name: "Grüßefdp.exe", Type: "application/pdf", SizeBytes: 5}}; !slices.Equal(m.Attachments, want) {
		t.Errorf("the attachments are %+v, want %+v", m.Attachments, want)
	}
	if name, content, err := f.Attachment(t.Context(), "news", m.ID, 2); name != "Grüßefdp.exe" || string(content) != "hello" || err != nil {
		t.Errorf("the attachment is %q %q, %v", name, content, err)
	}
	for _, number := range []int{-1, 0, 3} {
		if _, _, err := f.Attachment(t.Context(), "news", m.ID, number); fanfare.CodeOf(err) != fanfare.NotFound {
			t.Errorf("attachment %d: %v", number, err)
		}
	}
	page, err := f.HTML(t.Context(), "news", m.ID)
	if err != nil || !bytes.Contains(page, []byte(`src="data:image/png;base64,aW1hZ2U="`)) || bytes.Contains(page, []byte("cid:")) || bytes.Contains(page, []byte("CID:")) {
		t.Errorf("the HTML is %s, %v", page, err)
	}
	source, size, err := f.Source("news", m.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if text, err := io.ReadAll(source); int64(len(text)) != size || !strings.HasSuffix(string(text), complete) || err != nil {
		t.Errorf("the source has %d of %d bytes, %v", len(text), size, err)
	}
}

func TestACapturedWebhookIsShownAsOne(t *testing.T) {
	f := newFixture(t)
	id := delivery(1, 1)
	f.write("news/hook", id, "")
	text := "Return-Path: <captured@localhost>\r\nDelivered-To: captured@localhost\r\nX-Fanfare-Captured: news/hook\r\nFrom: captured@localhost\r\nTo: captured@localhost\r\nSubject: POST https://example.org/hook\r\nMIME-Version: 1.0\r\nContent-Type: application/json\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte(`{"a":1}`)) + "\r\n"
	if err := os.WriteFile(filepath.Join(f.folder, "news", "hook", id+".eml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m := f.show(id)
	if m.Kind != "webhook" || m.To != "https://example.org/hook" || m.Subject != "" || m.Text != `{"a":1}` || m.HTML || len(m.Attachments) != 0 {
		t.Errorf("the webhook is %+v", m)
	}
	if got := f.ids("news", httpapi.CapturedQuery{Recipient: "https://example.org/hook"}); len(got) != 1 {
		t.Errorf("found by its URL: %v", got)
	}
	if _, err := f.HTML(t.Context(), "", id); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("HTML of a webhook: %v", err)
	}
}

func TestHostileHTMLRunsNothing(t *testing.T) {
	for _, text := range []string{
		`<script>alert(1)</script>`, `<SCRIPT SRC=//x>`, `<script/><img src=x onerror=alert(1)></script>`, `<p onclick="alert(1)">`, `<img src=x OnError=alert(1)>`, `<a href="javascript:alert(1)">`,
		"<a href=\"java\tscript:alert(1)\">", `<a href=" &#106;avascript:alert(1)">`, `<iframe srcdoc="<script>alert(1)</script>"></iframe>`, `<object data=x></object>`, `<embed src=x>`, `<base href=//x>`,
		`<meta http-equiv=refresh content="0;url=//x">`, `<form action=//x><input name=a><button formaction=javascript:alert(1)>`, `<svg><style><img src=x onerror=alert(1)></style></svg>`, `<svg/onload=alert(1)>`,
		`<math><mtext><script>alert(1)</script>`, `<noscript><p title="</noscript><img src=x onerror=alert(1)>">`, `<!--[if mso]><script>alert(1)</script><![endif]-->`, `<template><script>alert(1)</script></template>`,
		`<link rel=stylesheet href=//x>`, `<x xlink:href="javascript:alert(1)">`, `<video src=x onerror=alert(1)><source onerror=alert(1)>`, `<plaintext><script>alert(1)`, `<xmp><script>alert(1)</script></xmp>`,
	} {
		out := strings.ToLower(string(rewritten("before "+text+" after", func(string) string { return "" })))
		for _, bad := range []string{"<script", "alert", "<iframe", "<object", "<embed", "<base", "<meta", "<form", "<input", "<button", "<svg", "<math", "<link", "<video", "srcdoc", "<!--"} {
			if strings.Contains(out, bad) {
				t.Errorf("%s became %s", text, out)
			}
		}
		if !strings.HasPrefix(out, "before ") {
			t.Errorf("%s became %s", text, out)
		}
	}
	if out := string(rewritten(`<!DOCTYPE html><html lang="en"><head><style>p { color: red }</style><title>A &amp; B</title></head><body><p style="color: blue" title="1 &lt; 2">Text &amp; more<br/></p></body></html>`, nil)); !strings.Contains(out, `<p style="color: blue" title="1 &lt; 2">Text &amp; more<br/></p>`) || !strings.Contains(out, "p { color: red }") {
		t.Errorf("harmless HTML became %s", out)
	}
}

func TestHostileMessagesAreBounded(t *testing.T) {
	f := newFixture(t)
	var deep strings.Builder
	for n := range 5000 {
		fmt.Fprintf(&deep, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", n, n)
	}
	image := base64.StdEncoding.EncodeToString(make([]byte, 1<<20))
	bomb := "MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=R\r\n\r\n--R\r\nContent-Type: text/html\r\n\r\n" + strings.Repeat(`<img src="cid:i">`, 1000) + strings.Repeat(`<a href="https://example.org">x</a>`, 1000) +
		"\r\n--R\r\nContent-Type: image/png\r\nContent-ID: <i>\r\nContent-Transfer-Encoding: base64\r\n\r\n" + image + "\r\n--R--\r\n"
	for name, text := range map[string]string{
		"headers":    "Subject: one\r\nSubject: two\r\nX-Fanfare-Captured: ops/other\r\nDelivered-To: eve@example.org\r\n" + strings.Repeat("X-Header: value\r\n", 20_000) + "\r\n",
		"injection":  "Subject: =?utf-8?q?one=0D=0ABcc:_eve@example.org=00=1B[31m?=\r\nFrom: =?utf-8?b?AAo=?= <a@example.org>\r\n\r\n",
		"long":       "Subject: " + strings.Repeat("x", 200_000) + "\r\n\r\n" + strings.Repeat("text ", 1_000_000),
		"charset":    "Subject: =?unknown?b?/////w==?=\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=\"no/such\"\r\n\r\n\xff\xfe\x00text",
		"encoding":   "MIME-Version: 1.0\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: rot13\r\n\r\nuryyb",
		"deep":       "MIME-Version: 1.0\r\n" + deep.String(),
		"parts":      "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\nContent-Disposition: attachment; filename=\"..\\..\\x\"\r\n\r\n\r\n", 20_000),
		"no headers": "",
		"bomb":       bomb,
	} {
		id := delivery(len(name)+100, len(text)%1000)
		f.write("news/email", id, text)
		begun := time.Now()
		m := f.show(id)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s took %s", name, took)
		}
		if m.Service != "news" || m.Channel != "email" || m.To != "ada@example.org" || len(m.Headers) > maxListed || len(m.Parts) > maxListed || len(m.Attachments) > maxListed || len(m.Links) > maxListed || len(m.Text) > maxTextBytes || len(m.Subject) > maxValueBytes {
			t.Errorf("%s is shown as %.2000v", name, m)
		}
		for _, value := range append([]string{m.Subject, m.From}, func() (values []string) {
			for _, h := range m.Headers {
				values = append(values, h.Name, h.Value)
			}
			for _, a := range m.Attachments {
				if strings.ContainsAny(a.Name, `/\:`) || a.Name == "" {
					t.Errorf("%s has the attachment %q", name, a.Name)
				}
			}
			return values
		}()...) {
			if strings.ContainsAny(value, "\r\n\x00\x1b") {
				t.Errorf("%s has the value %q", name, value)
			}
		}
		if m.HTML {
			page, err := f.HTML(t.Context(), "", id)
			if err != nil || len(page) > 2*maxInlineBytes {
				t.Errorf("the HTML of %s has %d bytes, %v", name, len(page), err)
			}
		}
		if err := f.Delete("", id); err != nil {
			t.Error(err)
		}
	}
	large := f.write("news/email", delivery(1, 1), simple)
	if err := os.Truncate(filepath.Join(f.folder, "news", "email", large+".eml"), maxMessageBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Show(t.Context(), "", large); fanfare.CodeOf(err) != fanfare.TooLarge {
		t.Errorf("a message that is too large: %v", err)
	}
	if got := f.ids("", httpapi.CapturedQuery{}); !slices.Equal(got, []string{large}) {
		t.Errorf("listed are %v", got)
	}
}

func TestFileNamesAreSafe(t *testing.T) {
	for name, want := range map[string]string{
		"": "attachment-7", "..": "attachment-7", "../../etc/passwd": "passwd", `C:\windows\x.exe`: "x.exe", "a\x00b\r\nc.txt": "abc.txt", ".profile": "profile", "a\u202egnp.exe": "agnp.exe",
		`x"; filename="y`: "x__ filename=_y", "Grüße.pdf": "Grüße.pdf", strings.Repeat("ü", 500): strings.Repeat("ü", 60), "trailing. ": "trailing", "con:stream": "stream",
	} {
		if got := fileName(name, 7); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestAListOfManyMessagesReadsOnlyItsPage(t *testing.T) {
	f := newFixture(t)
	newest := ""
	folder := filepath.Join(f.folder, "news", "email")
	f.write("news/email", delivery(0, 0), simple)
	for n := range window + 500 {
		newest = delivery(1+n/100, n%100)
		if err := os.Link(filepath.Join(folder, delivery(0, 0)+".eml"), filepath.Join(folder, newest+".eml")); err != nil {
			t.Fatal(err)
		}
	}
	page, next, searched, err := f.List(t.Context(), "news", httpapi.CapturedQuery{Limit: 100})
	if err != nil || len(page) != 100 || page[0].ID != newest || next != page[99].ID || searched != nil {
		t.Fatalf("%d messages, next %q, %v, %v", len(page), next, searched, err)
	}
	found, pages := 0, 0
	for q := (httpapi.CapturedQuery{Subject: "nothing", Limit: 100}); ; pages++ { // the last message is found in the end
		page, next, searched, err := f.List(t.Context(), "news", q)
		if err != nil {
			t.Fatal(err)
		}
		found += len(page)
		if next == "" {
			break
		}
		if searched == nil && pages == 0 {
			t.Error("an incomplete search says that it is complete")
		}
		q.Before = next
	}
	if found != 0 || pages < window/maxSearched {
		t.Errorf("%d messages on %d pages", found, pages)
	}
}

func TestNamesAreReadInOneWay(t *testing.T) {
	var names nameReader
	for _, name := range []string{
		"x.eml", "dlv-20261120-40-1.eml", "dlv-20261120-041-1.eml", "dlv-20261120-41-01.eml", "dlv-20261120-A-1.eml", "dlv-20261120--1.eml", "dlv-20261120-1-.eml", "dlv-20261120-0-0.eml", "dlv-20261120-1-100000000.eml",
		"dlv-20261120-10000000000000000-1.eml", "dlv-20261120-1-1-1.eml", "dlv-20261120-1-1", "dlv-20261120-+1-1.eml", "dlv-20261121-1-1.eml", "dlv-20261120-1-2.eml", "dlv-20261199-1-2.eml", "dlv-20261120-1_0-2.eml", "", ".eml",
	} {
		ref, ok := names.refOf(name)
		want, wanted := refOf(name)
		if ok != wanted || ok && ref != want {
			t.Errorf("%q is %v %v, want %v %v", name, ref, ok, want, wanted)
		}
	}
}

func FuzzShow(f *testing.F) {
	f.Add([]byte(simple))
	f.Add([]byte(complete))
	f.Add([]byte("Content-Type: text/html\r\n\r\n<script/><a href='cid:x'>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		x := newFixture(t)
		id := x.write("news/email", delivery(1, 1), string(text))
		m := x.show(id)
		if m.To != "ada@example.org" || m.Service != "news" {
			t.Errorf("the message is %+v", m)
		}
		if m.HTML {
			page, err := x.HTML(t.Context(), "news", id)
			if err != nil || bytes.Contains(bytes.ToLower(page), []byte("<script")) {
				t.Errorf("the HTML is %s, %v", page, err)
			}
		}
	})
}

// A server shows the folders of its own and of sinks together.
func TestSeveralFoldersAreOneList(t *testing.T) {
	f := newFixture(t)
	other := t.TempDir()
	f.write(filepath.Join(f.folder, "news", "email"), delivery(1, 1), "Delivered-To: a@example.org\r\nSubject: own\r\n\r\n")
	f.write(filepath.Join(other, "news", "email"), delivery(2, 1), "Delivered-To: b@example.org\r\nSubject: of the sink\r\n\r\n")
	f.write(filepath.Join(other, "sink", "received"), delivery(3, 1), "Delivered-To: c@example.org\r\nSubject: of nobody\r\n\r\n")
	f.Messages = New(Options{Folders: []string{f.folder, other, filepath.Join(other, "missing")}, Channels: func() []*catalog.Channel { return f.channels }})
	if got, want := f.ids("", httpapi.CapturedQuery{}), []string{delivery(3, 1), delivery(2, 1), delivery(1, 1)}; !slices.Equal(got, want) {
		t.Errorf("all are %v", got)
	}
	if got, want := f.ids("news", httpapi.CapturedQuery{}), []string{delivery(2, 1), delivery(1, 1)}; !slices.Equal(got, want) {
		t.Errorf("those of the service are %v", got)
	}
	if err := f.Delete("news", delivery(3, 1)); fanfare.CodeOf(err) != fanfare.NotFound {
		t.Errorf("a service deletes another one's: %v", err)
	}
	if removed, err := f.Clear(t.Context(), "news"); err != nil || removed != 2 {
		t.Errorf("removed %d, %v", removed, err)
	}
	if got := f.ids("", httpapi.CapturedQuery{}); !slices.Equal(got, []string{delivery(3, 1)}) {
		t.Errorf("left are %v", got)
	}
}
