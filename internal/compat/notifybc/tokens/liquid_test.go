package tokens_test

import (
	"encoding/json"
	"io"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/compat/notifybc/tokens"
	"fanfare.dev/fanfare/internal/render"
)

// A broadcast is compiled once, and each subscription gets the text that it would get alone.
func TestLiquidWritesTheTextOfEachSubscription(t *testing.T) {
	texts := []string{
		"plain", "{title} <b>{subscription::name}</b> & {name}", "{unsubscription_url} {unsubscription_all_url} {unsubscription_reversion_url}", "{subscription_id} {unsubscription_code} {UnsubscriptionCode}",
		"{subscription::a.b} {subscription::two words} {subscription::list[1]} {subscription::gone} {subscription::no} {subscription::empty}",
		"{{ x }} {% raw %} {{title}} {%", "{subscription::\"q\"} {subscription::'q'}", `\{title\} {`, "body{color:red} @media { .x { color: {color} } }", "{{ \"x\" }}{{{", "é{title}é",
	}
	subscriptions := []tokens.Subscription{
		{ID: "0123456789abcdef01234567", Code: "4711", Data: decode(t, `{"name":"Ann & Bo <x>","a":{"b":7},"two words":"two","list":[1,"second"],"no":false,"empty":"","color":"blue"}`)},
		{ID: "0123456789abcdef01234568", Code: "x y&z", Data: decode(t, `{"name":"é\"\\"}`)},
	}
	for _, notification := range []string{`{"title":"<Storm> & {name}"}`, ``} {
		v := &tokens.Values{Static: map[string]string{"service_name": "s"}, Root: "https://n.example/api"}
		if notification != "" {
			v.Notification = decode(t, notification)
		}
		for _, text := range texts {
			source := tokens.Liquid(text, v)
			template, err := render.Compile(render.Source{Name: "t", AsIs: true, Text: "|" + source + "|", HTML: "|" + source + "|"})
			if err != nil {
				t.Errorf("%q as %q: %v", text, source, err)
				continue
			}
			writer, err := render.MailBatch{Template: template, From: mail.Address{Address: "a@example.org"}, Domain: "example.org", Event: &fanfare.Event{}}.Writer()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range subscriptions {
				v.Subscription = &s
				want := "|" + tokens.Text(text, v) + "|"
				data, err := json.Marshal(map[string]any{"unsubscriptionCode": s.Code, "data": s.Data})
				if err != nil {
					t.Fatal(err)
				}
				message, _, err := writer.Write(nil, &render.Recipient{Address: "to@example.org", Date: time.Unix(0, 0), Subscriptions: []render.Subscription{{ID: s.ID, Data: data}}})
				if err != nil {
					t.Errorf("%q as %q: %v", text, source, err)
					continue
				}
				body := decodeQuotedPrintable(t, string(message.Body))
				// Codes are digits in practice; the query is escaped only where Text writes it.
				want = strings.ReplaceAll(want, "x+y%26z", "x y&z")
				if n := strings.Count(body, want); n != 2 {
					t.Errorf("%q as %q is in the mail %d times, want twice %q:\n%s", text, source, n, want, body)
				}
			}
			v.Subscription = nil
		}
	}
}

// decodeQuotedPrintable decodes the parts of a mail.
func decodeQuotedPrintable(t *testing.T, body string) string {
	t.Helper()
	var all strings.Builder
	for i, part := range strings.Split(body, "Content-Transfer-Encoding: ") {
		if strings.HasPrefix(part, "quoted-printable") {
			decoded, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(part)))
			if err != nil {
				t.Fatalf("part %d: %v", i, err)
			}
			part = string(decoded)
		}
		all.WriteString(part)
	}
	return all.String()
}
