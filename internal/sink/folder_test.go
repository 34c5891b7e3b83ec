package sink

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAFolderHasTheLayoutOfACaptureFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(from string, to []string, body string) {
		t.Helper()
		if err := f.Keep(from, to, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	keep("news@example.org", []string{"ada@example.org"}, "X-Fanfare-Captured: news/email\r\nMessage-ID: <dlv-20261120-40006-1@example.org>\r\nSubject: one\r\n\r\nText\r\n")
	keep("news@example.org", []string{"ada@example.org"}, "X-Fanfare-Captured: news/email\r\nMessage-ID: <dlv-20261120-40006-1@example.org>\r\nSubject: again\r\n\r\nText\r\n")
	keep("127.0.0.1:9", []string{"hooks.example.org/in?a=1"}, "POST /in?a=1 HTTP/1.1\r\nHost: hooks.example.org\r\nContent-Type: application/json\r\nWebhook-Id: dlv-20261120-40006-2\r\n\r\n{\"a\":1}")
	keep("a\r\nSubject: injected", []string{"b\r\nX: y"}, "X-Fanfare-Captured: ../../etc/passwd\r\nMessage-ID: <dlv-20261120-40006-3@x>\r\n\r\nx")
	keep("a", []string{"b", "c"}, "Subject: without an id\r\n\r\nMessage-ID: <dlv-20261120-40006-4@x>\r\n")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err = filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"news/email/dlv-20261120-40006-1.eml":    "Return-Path: <news@example.org>\r\nDelivered-To: ada@example.org\r\nX-Fanfare-Captured: news/email\r\nMessage-ID: <dlv-20261120-40006-1@example.org>\r\nSubject: again\r\n\r\nText\r\n",
		"sink/received/dlv-20261120-40006-2.eml": "Return-Path: <captured@localhost>\r\nDelivered-To: captured@localhost\r\nSubject: POST http://hooks.example.org/in?a=1\r\nContent-Type: application/json\r\nHost: hooks.example.org\r\nContent-Type: application/json\r\nWebhook-Id: dlv-20261120-40006-2\r\n\r\n{\"a\":1}",
		"sink/received/dlv-20261120-40006-3.eml": "Return-Path: <aSubject: injected>\r\nDelivered-To: bX: y\r\nX-Fanfare-Captured: ../../etc/passwd\r\nMessage-ID: <dlv-20261120-40006-3@x>\r\n\r\nx",
	} {
		if files[name] != want {
			t.Errorf("%s is %q", name, files[name])
		}
		delete(files, name)
	}
	if len(files) != 2 {
		t.Errorf("further files are %v", files)
	}
	for name, text := range files {
		if !strings.HasPrefix(name, "sink/received/dlv-") || !strings.HasSuffix(text, "Subject: without an id\r\n\r\nMessage-ID: <dlv-20261120-40006-4@x>\r\n") || !slices.ContainsFunc([]string{"b", "c"}, func(to string) bool { return strings.Contains(text, "Delivered-To: "+to+"\r\n") }) {
			t.Errorf("%s is %q", name, text)
		}
	}
}
