package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// exampleDocument is the part of an example's fanfare.yaml that its mails need.
type exampleDocument struct {
	Partials  map[string]struct{ File string }
	Templates map[string]struct {
		ExampleWords `yaml:",inline"`
		Layout, Lang string
		Locales      map[string]ExampleWords
	}
}

type ExampleWords struct {
	Subject, Markdown string
	MarkdownFile      string `yaml:"markdown_file"`
}

// exampleSource reads a template of an example.
func exampleSource(t *testing.T, example, template string) Source {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../../examples", example, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var doc exampleDocument
	if err := yaml.Unmarshal([]byte(read("fanfare.yaml")), &doc); err != nil {
		t.Fatal(err)
	}
	body := func(w ExampleWords) string {
		if w.MarkdownFile != "" {
			return read(w.MarkdownFile)
		}
		return w.Markdown
	}
	from := doc.Templates[template]
	s := Source{Name: template, Subject: from.Subject, Markdown: body(from.ExampleWords), Layout: from.Layout, Lang: from.Lang, Partials: map[string]string{}}
	for name, partial := range doc.Partials {
		s.Partials[name] = read(partial.File)
	}
	for locale, words := range from.Locales {
		s.Variants = append(s.Variants, Variant{Locale: locale, Subject: words.Subject, Markdown: body(words)})
	}
	if s.Markdown == "" || s.Layout == "" {
		t.Fatalf("%s has no template %s in Markdown and a layout", example, template)
	}
	return s
}

// documents are those that GOV.UK published, each with its path.
func documents(t *testing.T) (paths, data []string) {
	t.Helper()
	lines, err := os.ReadFile("../../examples/govuk/content-changes.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(lines)); s.Scan(); {
		var of struct {
			BasePath string `json:"base_path"`
		}
		if err := json.Unmarshal(s.Bytes(), &of); err != nil {
			t.Fatal(err)
		}
		paths, data = append(paths, of.BasePath), append(data, s.Text())
	}
	return paths, data
}

// published returns the documents with the given paths, in that order.
func published(t *testing.T, paths ...string) (data []string) {
	t.Helper()
	known, all := documents(t)
	for _, path := range paths {
		at := slices.Index(known, path)
		if at < 0 {
			t.Fatalf("there is no document %s", path)
		}
		data = append(data, all[at])
	}
	return data
}

func TestEveryGOVUKDocumentRenders(t *testing.T) {
	_, all := documents(t)
	if len(all) != 248 {
		t.Errorf("%d documents, want 248", len(all))
	}
	for _, template := range []string{"change", "page"} {
		source := exampleSource(t, "govuk", template)
		m := newMailing(t, source, "{}")
		for _, data := range all {
			m.Event.Data = json.RawMessage(data)
			for _, locale := range []string{"en-GB", "cy", "ar"} {
				r := newRecipient()
				r.Locale = locale
				write(t, m, r)
			}
		}
	}
}

const (
	contactHMRC = "/contact-hmrc"
	ofHMRC      = "/gwasanaethau-ar-lein-cymraeg-cthem"
	aboutJobs   = "/chwilio-am-swydd"
	ofRedSea    = "/government/news/uk-and-us-sanction-key-houthi-figures-to-protect-maritime-security-in-the-red-sea.ar"
	ofLibya     = "/government/speeches/this-resolution-marks-the-beginning-of-the-end-of-the-libyan-chemical-weapons-programme.ar"
)

// TestMailsOfTheExamplesEqualTheGoldenFiles writes mails of the examples on their data, in
// each language that they have. The tests in internal/test/peers check the golden files with
// other programs.
func TestMailsOfTheExamplesEqualTheGoldenFiles(t *testing.T) {
	price := []string{`{"id":"AAPL 2010-03-01","symbol":"AAPL","date":"2010-03-01T00:00:00Z","price":223.02}`}
	prices := append(price, `{"id":"GOOG 2010-03-01","symbol":"GOOG","date":"2010-03-01T00:00:00Z","price":560.19}`)
	for _, c := range []struct {
		example, template, locale string
		data                      []string
		subject                   string
		says                      string // somewhere in the text
	}{
		{"govuk", "change", "en-GB", published(t, contactHMRC), "GOV.UK: Contact HMRC", "Updated: 12 November 2024"},
		{"govuk", "change", "cy", published(t, ofHMRC), "GOV.UK: Gwasanaethau ar-lein Cyllid a Thollau EM yn y Gymraeg", "Diweddarwyd: 28 Mai 2015"},
		{"govuk", "change", "ar", published(t, ofRedSea), "GOV.UK: المملكة المتحدة والولايات المتحدة تفرضان عقوبات على شخصيات بارزة من الحوثيين لحماية أمن الملاحة في البحر الأحمر", "الجهة الناشرة: Foreign, Commonwealth & Development Office"},
		{"govuk", "page", "cy", published(t, aboutJobs), "Newid i dudalen: Dod o hyd i swydd gyda Paru Swyddi Ar-lein", "eich bod yn dilyn y dudalen hon"},
		{"govuk", "digest", "en-GB", published(t, contactHMRC, ofHMRC, ofLibya), "GOV.UK: 3 documents", "3 documents were published or changed"},
		{"govuk", "digest", "ar", published(t, ofRedSea, ofLibya, contactHMRC), "GOV.UK: 3 وثائق", "First published."},
		{"stocks", "price", "en", price, "AAPL at 223.02", "It closed at $223.02 on March 1, 2010."},
		{"stocks", "above", "ja", price, "AAPLが223.02に上昇", "2010年3月1日"},
		{"stocks", "digest", "ja", prices, "株価のお知らせ（2026年6月1日）", "$560.19"},
	} {
		t.Run(c.example+"-"+c.template+"."+c.locale, func(t *testing.T) {
			source := exampleSource(t, c.example, c.template)
			r := newRecipient()
			r.Locale = c.locale
			r.Subscriptions[0].Params = json.RawMessage(`{"symbol":"AAPL","trigger":220}`)
			m := newMailing(t, source, c.data[0])
			if c.template == "digest" {
				m = newDigest(t, source, c.data...)
				for i := range c.data {
					r.Items = append(r.Items, RecipientItem{Number: uint32(i), Subscriptions: []uint32{0}})
				}
			}
			message := write(t, m, r)
			golden(t, "mail-"+c.example+"-"+c.template+"."+c.locale+".md.liquid", message.Body)
			p := parse(t, message.Body)
			html, text := p.parts["text/html"], p.parts["text/plain"]
			if got := p.subject(t); got != c.subject {
				t.Errorf("subject %q", got)
			}
			dir := map[bool]string{true: "rtl", false: "ltr"}[c.locale == "ar"]
			if !strings.Contains(html, `<html lang="`+c.locale+`" dir="`+dir+`">`) {
				t.Errorf("the language is not said in %s", html)
			}
			if !strings.Contains(text, c.says) {
				t.Errorf("the text is\n%s\nwithout %s", text, c.says)
			}
			for _, part := range []string{text, html} {
				if !strings.Contains(part, "https://example.org/u/person-1") || strings.Contains(part, "{{") || strings.Contains(part, "{%") {
					t.Errorf("no way to unsubscribe, or something is left as it was written:\n%s", part)
				}
			}
		})
	}
}
