package render

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// realMail is one of testdata/mails with its event.
type realMail struct{ file, lang, layout, subject, data string }

var realMails = []realMail{
	{"earthquake.en.md.liquid", "en", "plain", "{{ event.title }}", `{"title":"M 7.1 - 60km SE of Kokopo","mag":7.1,"place":"60 km SE of Kokopo, Papua New Guinea","depth":35.2,"tsunami":1,"url":"https://earthquake.example.org/e?id=us7000&v=1","stations":[{"name":"Rabaul","km":64,"intensity":"VII"},{"name":"Lae & Nadzab","km":580,"intensity":"III"}]}`},
	{"govuk.cy.md.liquid", "cy", "plain", "GOV.UK: {{ event.title }}", `{"title":"Hawlio ad-daliad treth","base_path":"/hawlio-ad-daliad-treth","description":"Sut i hawlio ad-daliad os ydych wedi talu gormod o dreth.","change_note":"Ychwanegwyd manylion am y flwyddyn dreth 2026 i 2027. Mae’r ffurflen <P50> wedi newid.","organisations":["Cyllid a Thollau EF","Llywodraeth Cymru"]}`},
	{"stocks.ar.md.liquid", "ar", "plain", "{{ event.symbol }}: {{ event.price }}", `{"symbol":"ACME","price":12.5,"before":11.75,"url":"https://stocks.example.org/p?s=ACME"}`},
	{"earthquake.ja.md.liquid", "ja", "letter", "{{ event.title }}", `{"title":"宮城県沖で地震","mag":6.2,"place":"宮城県沖","depth":50,"tsunami":0,"url":"https://earthquake.example.org/ja"}`},
	{"newsletter.en.html.liquid", "en-GB", "plain", "{{ event.title }}", `{"title":"What is new this week","description":"Two things, side by side.","first":"Roads","second":"Rivers","place":"Written in York.","url":"https://news.example.org/a"}`},
}

func (m realMail) source(t *testing.T) Source {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "mails", m.file))
	if err != nil {
		t.Fatal(err)
	}
	s := Source{Name: m.file, Subject: m.subject, Layout: m.layout, Lang: m.lang}
	if strings.HasSuffix(m.file, ".md.liquid") {
		s.Markdown = string(text)
	} else {
		s.HTML = string(text)
	}
	return s
}

// TestRealMailsEqualTheGoldenFiles writes mails in four languages. The tests in
// internal/test/peers read the golden files with other programs.
func TestRealMailsEqualTheGoldenFiles(t *testing.T) {
	for _, m := range realMails {
		t.Run(m.file, func(t *testing.T) {
			message := write(t, newMailing(t, m.source(t), m.data), newRecipient())
			golden(t, "mail-"+m.file, message.Body)
			p := parse(t, message.Body)
			html, text := p.parts["text/html"], p.parts["text/plain"]
			dir := map[bool]string{true: "rtl", false: "ltr"}[m.lang == "ar"]
			for _, want := range []string{`<html lang="` + m.lang + `" dir="` + dir + `">`, `name="color-scheme"`, "@media (prefers-color-scheme: dark)", `style="margin: 0 0 16px`} {
				if !strings.Contains(html, want) {
					t.Errorf("no %s in the HTML", want)
				}
			}
			if strings.Contains(html, "<f-") || strings.Contains(text, "<p") || strings.Contains(text+html, "{{") || strings.Contains(text+html, "{%") {
				t.Error("something was left as it was written")
			}
			if link := strings.Contains(text, "https://example.org/u/person-1") && strings.Contains(html, `href="https://example.org/u/person-1"`); link != (m.layout == "plain") {
				t.Errorf("a link to unsubscribe: %v", link)
			}
			if !strings.Contains(text, "Ada & Co") && m.file != "newsletter.en.html.liquid" {
				t.Error("the text has no name")
			}
		})
	}
}
