package mail

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// FuzzMessage reads all properties of arbitrary messages.
func FuzzMessage(f *testing.F) {
	f.Add([]byte("Subject: a\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>x<b\r\n--b--\r\n"), uint16(3))
	f.Add([]byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nFrom: a <b@c>\r\n\r\nx\r\n--b\r\nContent-Type: image/png; name*=utf-8''%ff\r\nContent-Disposition: inline\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAA\r\n--b--\r\n"), uint16(0))
	all := append([]string{"header:From:asGroupedAddresses:all", "header:X:asURLs", "header:Date:asDate"}, emailProperties...)
	parts := append([]string{"header:Content-Type:asText:all"}, bodyProperties...)
	f.Fuzz(func(t *testing.T, message []byte, most uint16) {
		fetched, err := newFetch(fetchArguments{Properties: &all, BodyProperties: &parts, FetchAll: true, MaxBytes: core.UnsignedInt(most)})
		if err != nil {
			t.Fatal(err)
		}
		tree := mimetree.Parse(message)
		d := newDigest(message, tree)
		if !utf8.ValidString(d.preview) || utf8.RuneCountInString(d.preview) > maxPreview {
			t.Fatalf("preview %q", d.preview)
		}
		object := map[string]any{}
		w := &writer{fetch: fetched, left: core.MaxResponse}
		w.digest(object, d)
		if err := w.content(object, message, tree, blob{email: 1}); err != nil {
			t.Fatal(err)
		}
		b := bodyOf(tree)
		for _, value := range object["bodyValues"].(map[string]any) {
			if text := value.(map[string]any)["value"].(string); !utf8.ValidString(text) || most > 0 && len(text) > int(most) {
				t.Fatalf("value %q", text)
			}
		}
		if n := len(object["bodyValues"].(map[string]any)); n > len(b.leaves) {
			t.Fatalf("%d values of %d parts", n, len(b.leaves))
		}
		text, err := json.Marshal(object)
		if err != nil || !utf8.Valid(text) || strings.Contains(string(text), `\u0000`) && !strings.Contains(string(message), "\x00") && !strings.Contains(string(message), "=") {
			t.Fatalf("%v: %q", err, text)
		}
	})
}

type fixedClock struct{}

func (fixedClock) Now() time.Time { return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) }

// FuzzDraft creates messages from arbitrary records. An accepted record gives the message its fields and no others.
func FuzzDraft(f *testing.F) {
	for _, seed := range []string{
		`{"mailboxIds":{"B1":true},"subject":"a","from":[{"name":"x","email":"a@b"}],"textBody":[{"partId":"1"}],"bodyValues":{"1":{"value":"t"}},"attachments":[{"blobId":"C1","type":"a/b","name":"n"}]}`,
		`{"mailboxIds":{"B1":true},"header:X:asText":"\u00e9","bodyStructure":{"type":"multipart/mixed","header:X-A":"b","subParts":[{"partId":"1","type":"text/html","language":["de"]}]},"bodyValues":{"1":{"value":"t"}}}`,
	} {
		f.Add([]byte(seed))
	}
	store := mailbox.New(storetest.OpenAt(f, f.TempDir()), mailbox.Options{Clock: fixedClock{}, Logger: slog.New(slog.DiscardHandler)})
	f.Cleanup(store.Close)
	if _, err := store.Create(context.Background(), mailbox.Owner{ID: 7, Service: "press", Address: "ann@example.org"}); err != nil {
		f.Fatal(err)
	}
	m := New(Options{Store: store, Clock: fixedClock{}, Logger: slog.New(slog.DiscardHandler)})
	f.Fuzz(func(t *testing.T, record []byte) {
		if core.CheckText(record) != nil {
			return
		}
		properties, err := core.ParseObject(record)
		if err != nil {
			return
		}
		d := &draft{methods: m, ctx: t.Context(), account: 7}
		if d.read(properties) != nil {
			return
		}
		root, failed := d.root()
		if failed != nil || d.err != nil {
			return
		}
		message, err := d.message(root)
		if err != nil {
			t.Fatal(err)
		}
		allowed := len(d.fields) + len(root.Fields) + 6 // Message-ID, Date, MIME-Version, Content-Type, Content-Transfer-Encoding
		tree := mimetree.Parse(message)
		n := 0
		for field := range mimetree.Fields(message[tree.Header.From:tree.Header.To]) {
			if n++; !fieldName.MatchString(field.Name) {
				t.Fatalf("%q made the field %q", record, field.Raw)
			}
		}
		if n > allowed {
			t.Fatalf("%q made %d fields: %q", record, n, message)
		}
	})
}
