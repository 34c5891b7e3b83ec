package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

const injection = "x\r\nBcc: all@example.org\r\n\r\nbody"

func TestValuesCannotAddHeaders(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*MailBatch, *Recipient)
		pointer string // of the error, or "" where the value is made harmless
	}{
		{"from name", func(m *MailBatch, _ *Recipient) { m.From.Name = injection }, "/from"},
		{"from name, tab", func(m *MailBatch, _ *Recipient) { m.From.Name = "a\tb" }, "/from"},
		{"from address", func(m *MailBatch, _ *Recipient) { m.From.Address = "a@example.org\r\nBcc: b@example.org" }, "/from"},
		{"from address, second", func(m *MailBatch, _ *Recipient) { m.From.Address = "a@example.org>, <b@example.org" }, "/from"},
		{"reply to", func(m *MailBatch, _ *Recipient) { m.ReplyTo = "a@example.org\r\nBcc: b@example.org" }, "/reply_to"},
		{"sender", func(m *MailBatch, _ *Recipient) { m.Sender = "a@example.org>\r\nRCPT TO:<b@example.org" }, "/sender"},
		{"domain", func(m *MailBatch, _ *Recipient) { m.Domain = "example.org>\r\nBcc: x" }, "/domain"},
		{"list id", func(m *MailBatch, _ *Recipient) { m.ListID = "list\r\nBcc: x" }, "/list_id"},
		{"unsubscribe mailto", func(m *MailBatch, _ *Recipient) { m.UnsubscribeMailto = "a@example.org\r\nx" }, "/unsubscribe_mailto"},
		{"unsubscribe link", func(m *MailBatch, r *Recipient) { r.ID = injection }, "/unsubscribe_url"},
		{"to", func(_ *MailBatch, r *Recipient) { r.Address = "a@example.net\r\nBcc: b@example.net" }, "/to"},
		{"to, line feed", func(_ *MailBatch, r *Recipient) { r.Address = "a@example.net\n" }, "/to"},
		{"to, in quotes", func(_ *MailBatch, r *Recipient) { r.Address = "\"a\r\nb\"@example.net" }, "/to"},
		{"to, NUL", func(_ *MailBatch, r *Recipient) { r.Address = "a\x00@example.net" }, "/to"},
		{"to, second", func(_ *MailBatch, r *Recipient) { r.Address = "a@example.net, b@example.net" }, "/to"},
		{"to, NEL", func(_ *MailBatch, r *Recipient) { r.Address = "a\u0085b@example.net" }, "/to"},
		{"date", func(_ *MailBatch, r *Recipient) { r.Date = time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC) }, "/date"},
		{"subject from the event", func(m *MailBatch, _ *Recipient) {
			m.Event.Data, _ = json.Marshal(map[string]string{"title": injection})
		}, ""},
		{"subject from the subscription", func(_ *MailBatch, r *Recipient) {
			r.Subscriptions[0].Data, _ = json.Marshal(map[string]string{"link": injection})
		}, ""},
		{"event id", func(m *MailBatch, _ *Recipient) { m.Event.ID = injection }, ""},
		{"locale", func(_ *MailBatch, r *Recipient) { r.Locale = injection }, ""},
	}
	source := Source{Subject: "{{ event.title }} {{ subscription.data.link }} {{ meta.id }} {{ subscriber.locale }}", Text: "t"}
	clean := newMailing(t, source, `{"title":"x"}`)
	fields := parse(t, write(t, clean, newRecipient()).Body).count
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, r := newMailing(t, source, `{"title":"x"}`), newRecipient()
			tt.change(&m, r)
			w, err := m.Writer()
			var message driver.Message
			if err == nil {
				message, _, err = w.Write(nil, r)
			}
			if tt.pointer != "" {
				if err == nil {
					t.Fatalf("written:\n%s", message.Body)
				}
				if e := problem(t, err); e.Pointer != tt.pointer || e.Code != fanfare.Invalid {
					t.Errorf("%+v, want %s", *e, tt.pointer)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			p := parse(t, message.Body)
			if p.count != fields || p.header.Get("Bcc") != "" {
				t.Errorf("%d header fields, want %d:\n%s", p.count, fields, message.Body)
			}
		})
	}
}

func TestHeadersAreFoldedAndEncoded(t *testing.T) {
	long := strings.Repeat("Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. ", 4)
	tests := []struct{ name, subject, want string }{
		{"plain", "a b", "a b"},
		{"white space", "  a \t\r\n b  ", "a b"},
		{"folded", strings.Repeat("word ", 60) + "end", strings.Repeat("word ", 60) + "end"},
		{"one long word", strings.Repeat("x", 500), strings.Repeat("x", 500)},
		{"a word over the limit", strings.Repeat("x", 1000), strings.Repeat("x", 1000)},
		{"looks encoded", "=?utf-8?q?a?= b", "=?utf-8?q?a?= b"},
		{"mostly ASCII", long, strings.TrimSpace(long)},
		{"mostly not", strings.Repeat("東京都", 40), strings.Repeat("東京都", 40)},
		{"emoji", strings.Repeat("🌋", 60), strings.Repeat("🌋", 60)},
		{"controls", "a\x00\x07\x1bb\u0085c\u2028d", "ab c d"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMailing(t, Source{Subject: "{{ event.s }}", Text: "x"}, "{}")
			m.Event.Data, _ = json.Marshal(map[string]string{"s": tt.subject})
			message := write(t, m, newRecipient())
			if got := parse(t, message.Body).subject(t); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			head, _, _ := strings.Cut(string(message.Body), "\r\n\r\n")
			for line := range strings.SplitSeq(head, "\r\n") {
				if strings.Contains(line, "=?utf-8?") && len(line) > maxEncodedLine {
					t.Errorf("line of %d bytes: %s", len(line), line)
				}
				if len(line) > wantedLine && strings.Contains(strings.TrimSpace(strings.TrimPrefix(line, "Subject: ")), " ") {
					t.Errorf("not folded: %s", line)
				}
			}
		})
	}
}
