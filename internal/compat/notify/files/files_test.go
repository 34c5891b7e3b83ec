package files

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/people/pages"
	"fanfare.dev/fanfare/internal/store/control"
)

// A memory is a Store.
type memory map[string]control.LinkedFile

func (m memory) AddLinkedFile(_ context.Context, f *control.LinkedFile) error {
	m[string(f.ID)] = *f
	return nil
}

func (m memory) LinkedFile(_ context.Context, id []byte) (*control.LinkedFile, error) {
	if f, ok := m[string(id)]; ok {
		return &f, nil
	}
	return nil, nil
}

func (m memory) LinkedFilesOf(_ context.Context, service string, recipient []byte) (ids [][]byte, err error) {
	for id, f := range m {
		if f.Service == service && bytes.Equal(f.Recipient, recipient) {
			ids = append(ids, []byte(id))
		}
	}
	return ids, nil
}

func (m memory) ExpireLinkedFiles(_ context.Context, until int64) error {
	for id, f := range m {
		if f.ExpiresAt <= until {
			delete(m, id)
		}
	}
	return nil
}

func (m memory) EraseLinkedFiles(_ context.Context, service string, recipients [][]byte) error {
	for id, f := range m {
		for _, r := range recipients {
			if f.Service == service && bytes.Equal(f.Recipient, r) {
				delete(m, id)
			}
		}
	}
	return nil
}

type setClock struct{ now time.Time }

func (c *setClock) Now() time.Time { return c.now }

type fixture struct {
	*Files
	t     *testing.T
	store memory
	clock *setClock
	mux   http.Handler
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, store: memory{}, clock: &setClock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
	f.Files = New(Options{Store: f.store, Key: []byte("key of the hashes"), Clock: f.clock, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Site: func(service string) (*pages.Site, string) {
			return &pages.Site{Name: "Name of " + service, Texts: pages.Texts{"cy": {"file_button": "Lawrlwytho"}}}, "help@example.org"
		},
		Address: func(*http.Request) netip.Addr { return netip.MustParseAddr("192.0.2.1") }})
	f.mux = f.Handler()
	return f
}

func file(content string, more map[string]any) map[string]any {
	object := map[string]any{"file": base64.StdEncoding.EncodeToString([]byte(content))}
	for name, value := range more {
		object[name] = value
	}
	return object
}

func (f *fixture) upload(value any) (path string) {
	f.t.Helper()
	link, err := f.Upload(f.t.Context(), "news", "Ada@Example.org", value, "https://notify.example/")
	if err != nil {
		f.t.Fatal(err)
	}
	path, ok := strings.CutPrefix(link, "https://notify.example")
	if !ok {
		f.t.Fatal(link)
	}
	return path
}

func (f *fixture) get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept-Language", "cy-GB,en;q=0.5")
	f.mux.ServeHTTP(w, r)
	return w
}

func (f *fixture) post(path, address string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(url.Values{"address": {address}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	f.mux.ServeHTTP(w, r)
	return w
}

func TestFileIsDownloadedByItsRecipient(t *testing.T) {
	f := newFixture(t)
	path := f.upload(file("a,b\n", map[string]any{"filename": "Übersicht.csv", "retention_period": nil}))
	page := f.get(path)
	for _, want := range []string{"Name of news", "2026-08-30", "help@example.org", "Lawrlwytho", `type="email"`} {
		if !strings.Contains(page.Body.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.Body.String(), "bersicht") || page.Code != http.StatusOK {
		t.Errorf("%d: the page names the file before the address is known", page.Code)
	}
	if strings.Contains(page.Body.String(), "<script") || !strings.Contains(page.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Error("the page is not safe")
	}
	if wrong := f.post(path, "bob@example.org"); wrong.Code != http.StatusUnprocessableEntity || !strings.Contains(wrong.Body.String(), "not sent to this email address") || strings.Contains(wrong.Body.String(), "a,b") {
		t.Errorf("another address: %d", wrong.Code)
	}
	right := f.post(path, " ada@example.ORG ")
	if right.Code != http.StatusOK || right.Body.String() != "a,b\n" || right.Header().Get("Content-Disposition") != "attachment; filename*=utf-8''%C3%9Cbersicht.csv" {
		t.Errorf("%d %q %v", right.Code, right.Body, right.Header())
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow", "Cache-Control": "no-store", "Content-Type": "text/csv; charset=utf-8"} {
		if got := right.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestFileNeedsNoAddressIfItsSenderSaysSo(t *testing.T) {
	f := newFixture(t)
	path := f.upload(file("%PDF-1.7\n", map[string]any{"confirm_email_before_download": false}))
	page := f.get(path)
	if strings.Contains(page.Body.String(), `type="email"`) || !strings.Contains(page.Body.String(), "document.pdf") {
		t.Errorf("%s", page.Body)
	}
	if got := f.post(path, ""); got.Code != http.StatusOK || got.Body.String() != "%PDF-1.7\n" {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestFileEndsWithItsRetentionAndItsPerson(t *testing.T) {
	f := newFixture(t)
	short, long := f.upload(file("text", map[string]any{"retention_period": "1 week"})), f.upload(file("text", map[string]any{"retention_period": "78 weeks"}))
	f.clock.now = f.clock.now.Add(7 * 24 * time.Hour)
	if got := f.get(short); got.Code != http.StatusGone || !strings.Contains(got.Body.String(), "help@example.org") {
		t.Errorf("expired: %d", got.Code)
	}
	if err := f.Expire(t.Context()); err != nil || len(f.store) != 1 {
		t.Errorf("%d files are kept: %v", len(f.store), err)
	}
	if got := f.get(short); got.Code != http.StatusNotFound {
		t.Errorf("removed: %d", got.Code)
	}
	if got := f.get(long); got.Code != http.StatusOK {
		t.Errorf("not expired: %d", got.Code)
	}
	if err := f.Erase(t.Context(), "other", []string{"ada@example.org"}); err != nil || len(f.store) != 1 {
		t.Errorf("a file of another service is erased: %v", err)
	}
	if err := f.Erase(t.Context(), "news", []string{"person-1", "ada@example.org"}); err != nil || len(f.store) != 0 {
		t.Errorf("the file of an erased person is kept: %v", err)
	}
}

func TestFilesOfAPersonAreExported(t *testing.T) {
	f := newFixture(t)
	path := f.upload(file("the secret text", map[string]any{"filename": "plan.txt"}))
	f.upload(file("other", nil)) // its message is not stored any more
	texts := [][]byte{[]byte(`{"link":"https://notify.example` + path + `"}`), []byte(`/d/too-short`)}
	var known, unknown int
	export := func(service string, names ...string) (n int) {
		t.Helper()
		known, unknown = 0, 0
		err := f.Export(t.Context(), service, names, texts, func(e *Exported) error {
			switch {
			case e.Name == "plan.txt" && string(e.Content) == "the secret text" && e.Type != "" && e.SizeBytes == 15 && !e.ExpiresAt.IsZero():
				known++
			case e.Name == "" && e.Content == nil && e.SizeBytes > 0:
				unknown++
			default:
				t.Errorf("exported %+v", e)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return known + unknown
	}
	if export("news", "person-1", "ada@example.org", "ADA@example.org"); known != 1 || unknown != 1 {
		t.Errorf("%d files are exported with their contents, %d without", known, unknown)
	}
	if n := export("other", "ada@example.org") + export("news", "bob@example.org", "person-1"); n != 0 {
		t.Errorf("%d files of others are exported", n)
	}
}

func TestOnlyTheLinkReadsTheFile(t *testing.T) {
	f := newFixture(t)
	path := f.upload(file("the secret text", map[string]any{"filename": "plan.txt"}))
	for id, stored := range f.store {
		for _, text := range []string{"secret", "plan.txt", "ada"} {
			if bytes.Contains(stored.Content, []byte(text)) {
				t.Errorf("the store reveals %q", text)
			}
		}
		if strings.Contains(path, hex.EncodeToString([]byte(id))) {
			t.Error("the id leads to the link")
		}
		stored.Content[20] ^= 1
	}
	if got := f.post(path, "ada@example.org"); got.Code != http.StatusGone {
		t.Errorf("a damaged file: %d", got.Code)
	}
	for _, key := range []string{"x", strings.Repeat("A", 43), strings.Repeat("A", 44), path[3:] + "A", "%2e%2e", path[3:len(path)-1] + "!"} {
		if got := f.get("/d/" + key); got.Code != http.StatusNotFound {
			t.Errorf("%s: %d", key, got.Code)
		}
	}
}

func TestAddressesCannotBeGuessed(t *testing.T) {
	f := newFixture(t)
	path := f.upload(file("text", nil))
	for i := range triesPerFile {
		if got := f.post(path, "x@example.org"); got.Code != http.StatusUnprocessableEntity {
			t.Fatalf("attempt %d: %d", i+1, got.Code)
		}
	}
	if got := f.post(path, "ada@example.org"); got.Code != http.StatusTooManyRequests {
		t.Errorf("after %d attempts: %d", triesPerFile, got.Code)
	}
	f.clock.now = f.clock.now.Add(time.Hour)
	if got := f.post(path, "ada@example.org"); got.Code != http.StatusOK {
		t.Errorf("an hour later: %d", got.Code)
	}
}

func TestFilesAreCheckedAsNotifyDoes(t *testing.T) {
	office := func(name, mimetype string) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, member := range []string{"mimetype", name} {
			w, err := z.CreateHeader(&zip.FileHeader{Name: member})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(w, mimetype)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	tests := []struct {
		value any
		name  string // or
		wrong string
	}{
		{file("text", nil), "document.txt", ""},
		{file(`{"a":1}`, nil), "document.json", ""},
		{file("a,b", map[string]any{"is_csv": true}), "document.csv", ""},
		{file("a,b", map[string]any{"is_csv": true, "filename": nil, "confirm_email_before_download": nil}), "document.csv", ""},
		{file("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR", nil), "document.png", ""},
		{file(`{\rtf1 x}`, nil), "document.rtf", ""},
		{file(office("word/document.xml", "x"), nil), "document.docx", ""},
		{file(office("xl/workbook.xml", "x"), nil), "document.xlsx", ""},
		{file(office("content.xml", types["odt"]), nil), "document.odt", ""},
		{file("text", map[string]any{"filename": "notes.TXT"}), "notes.TXT", ""},
		{file("text", map[string]any{"filename": "a.exe"}), "", "Unsupported file type 'exe'. Supported types are: "},
		{file("text", map[string]any{"filename": "a"}), "", "filename must end with a file extension"},
		{file("text", map[string]any{"filename": strings.Repeat("a", 97) + ".txt"}), "", "filename cannot be longer than 100 characters"},
		{file("a,b", map[string]any{"filename": "a.csv", "is_csv": true}), "", "Do not set a value for is_csv"},
		{file("MZ\x90\x00\x03\x00\x00\x00program", map[string]any{"filename": "a.pdf"}), "", "The file was refused"},
		{file("text", map[string]any{"filename": "../a.txt"}), "", "The file was refused"},
		{file("text", map[string]any{"retention_period": "79 weeks"}), "", "Unsupported value for retention_period '79 weeks'. Supported periods are from 1 to 78 weeks."},
		{file("text", map[string]any{"retention_period": 3.0}), "", "Unsupported value for retention_period '3'"},
		{file("text", map[string]any{"confirm_email_before_download": "yes"}), "", "Unsupported value for confirm_email_before_download: 'yes'"},
		{file(strings.Repeat("a", MaxBytes+1), nil), "", "File is too big. Files must be smaller than 2MB"},
		{file(strings.Repeat("a", 3<<20), nil), "", "File is too big"},
		{file(strings.Repeat("a", MaxBytes), nil), "document.txt", ""},
		{map[string]any{"file": "%%"}, "", "file is not valid base64"},
		{map[string]any{"file": 1.0}, "", "file must be the file in base64"},
		{map[string]any{"file": ""}, "", "file is empty"},
	}
	for i, tt := range tests {
		u, err := read(tt.value)
		switch {
		case err == nil && (tt.wrong != "" || u.name != tt.name):
			t.Errorf("%d: %s, want %s%s", i, u.name, tt.name, tt.wrong)
		case err != nil && (tt.wrong == "" || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%d: %v, want %s%s", i, err, tt.name, tt.wrong)
		}
	}
}
