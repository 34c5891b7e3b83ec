package docexamples

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/render/mime"
)

// randoms is for how many recipients each template is rendered.
const randoms = 1000

// TestExampleTemplatesRenderForRandomRecipients renders each template that an example
// shows for people of whom any part may be unknown, and with events of which the
// schema is all that is sure.
func TestExampleTemplatesRenderForRandomRecipients(t *testing.T) {
	rendered := 0
	for _, page := range pagesWithExamples(t) {
		p := &plan{}
		if plans[page] != nil {
			*p = *plans[page]
		}
		p.setDefaults()
		_, all := p.documents(t, page)
		for line, d := range all {
			rendered += renderAll(t, fmt.Sprintf("%s:%d", page, line), folder(page), d.part, d.whole)
		}
	}
	examples, err := filepath.Glob(filepath.Join(root, "examples", "*", "fanfare.yaml"))
	if err != nil || len(examples) < 3 {
		t.Fatal(examples, err)
	}
	for _, example := range examples {
		b, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		doc := parseYAML(t, example, string(b))
		rendered += renderAll(t, example, filepath.Dir(example), doc, doc)
	}
	if rendered < 20 {
		t.Errorf("%d templates were found on all pages", rendered)
	}
}

// A use is a topic that writes with a template, nil for a message to people by name.
type use struct {
	topic  string
	digest bool
	schema map[string]any
	params []map[string]string // of each rule
}

// renderAll renders the templates of a document that has the part of an example in
// it, and counts them.
func renderAll(t *testing.T, where, dir string, part, whole map[string]any) (rendered int) {
	t.Helper()
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := document.ParseDocument(text, dir)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for _, name := range names(inner(part, "templates")) {
		spec := doc.Templates[name]
		if spec.Formatter != "" { // a worker writes its messages: TestAWorkerFormatsMessages of internal/test/e2e
			continue
		}
		template, err := render.Compile(sourceOf(name, spec.TemplateParts))
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		rendered++
		uses := usesOf(t, doc, name)
		if len(uses) == 0 {
			uses = []use{{}}
		}
		t.Run(fmt.Sprintf("%s/%s", where, name), func(t *testing.T) {
			t.Parallel()
			for _, u := range uses {
				if u.topic != "" && u.digest != template.Digest() && template.Digest() {
					continue
				}
				renderRandomly(t, template, spec, u)
			}
		})
	}
	return rendered
}

func usesOf(t *testing.T, doc *document.Document, name string) (uses []use) {
	t.Helper()
	for _, topic := range slices.Sorted(maps.Keys(doc.Topics)) {
		spec := doc.Topics[topic]
		one := use{topic: topic, digest: spec.Digest.Template == name}
		if len(spec.Schema) > 0 {
			if err := json.Unmarshal(spec.Schema, &one.schema); err != nil {
				t.Fatal(err)
			}
		}
		used := spec.Template == name || one.digest
		for _, rule := range spec.Rules {
			one.params = append(one.params, rule.Params)
			used = used || rule.Template == name
		}
		if used {
			uses = append(uses, one)
		}
	}
	return uses
}

// sourceOf is the template of a document.
func sourceOf(name string, p catalog.TemplateParts) render.Source {
	source := render.Source{Name: name, Subject: p.Subject, Text: p.Text, HTML: p.HTML, JSON: p.JSON, Markdown: p.Markdown, Layout: p.Layout, Lang: p.Lang,
		Page: p.Page, Partials: p.Partials, Syntax: p.Syntax, SMS: p.Type == catalog.TemplateSMS}
	add := func(locale, device string, w catalog.TemplateWords) {
		source.Variants = append(source.Variants, render.Variant{Locale: locale, Device: device, Subject: w.Subject, Text: w.Text, HTML: w.HTML, JSON: w.JSON, Markdown: w.Markdown})
	}
	for device, words := range p.Devices {
		add("", device, words)
	}
	for locale, one := range p.Locales {
		if !one.IsZero() {
			add(locale, "", one.TemplateWords)
		}
		for device, words := range one.Devices {
			add(locale, device, words)
		}
	}
	return source
}

// renderRandomly writes to random recipients of random events.
func renderRandomly(t *testing.T, template *render.Template, spec *document.TemplateSpec, u use) {
	t.Helper()
	m := maker{rand.New(rand.NewPCG(7, uint64(len(u.topic)))), u.schema}
	if m.root == nil && u.topic == "" { // the data of a message are what its template asks for
		data, _, err := template.Sample(nil)
		if err != nil {
			t.Fatal(err)
		}
		m.root = map[string]any{"const": asValue(t, data)}
	}
	failed := 0
	for i := range randoms {
		event := &fanfare.Event{ID: fmt.Sprint(i), Source: "/example", Type: "example", Data: asJSON(t, m.event(t)), Time: time.Unix(1_800_000_000, 0)}
		r := m.recipient(t, u, spec)
		if err := renderOne(t, template, event, u, spec, r, m.random); err != nil {
			if failed++; failed <= 3 {
				t.Errorf("%v\nevent %s\nrecipient %+v", err, event.Data, r)
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d failed", failed, randoms)
	}
}

func renderOne(t *testing.T, template *render.Template, event *fanfare.Event, u use, spec *document.TemplateSpec, r *render.Recipient, random *rand.Rand) error {
	t.Helper()
	var digest *render.Digest
	mailed := event
	if template.Digest() {
		items := 1 + random.IntN(4)
		for i := range items {
			var of []uint32
			for n := range r.Subscriptions {
				of = append(of, uint32(n))
			}
			r.Items = append(r.Items, render.RecipientItem{Number: uint32(i), Subscriptions: of})
		}
		r.Omitted = random.IntN(3)
		item := &render.Item{Event: event, Topic: u.topic}
		digest = &render.Digest{Due: time.Unix(1_800_000_000, 0), Cadence: "daily 08:00", Zone: time.UTC, Item: func(uint32) *render.Item { return item }}
		mailed = nil
	}
	if spec.Type == catalog.TemplateSMS || spec.JSON != "" && spec.Subject == "" {
		w, err := render.WebhookBatch{Template: template, Event: mailed, Digest: digest, Topic: u.topic, Service: "example", Direct: u.topic == ""}.Writer()
		if err != nil {
			return err
		}
		r.Address = "https://example.org/"
		_, body, err := w.Write(nil, r)
		if err == nil && !json.Valid(body) {
			return errors.New("what is posted is not JSON")
		}
		return err
	}
	link := func(dst []byte, _ *render.Recipient) []byte { return append(dst, "https://example.org/u/x"...) }
	w, err := render.MailBatch{Template: template, From: mail.Address{Address: "news@example.org"}, Domain: "example.org", Event: mailed, Digest: digest,
		Topic: u.topic, Service: "example", UnsubscribeURL: link, PreferencesURL: link,
		EncodeFiles: func(mime.FileSet) (*mime.EncodedFiles, error) { return nil, nil }}.Writer()
	if err != nil {
		return err
	}
	shown, err := w.Preview(r)
	if err != nil {
		return err
	}
	if m := emptyParagraph.FindString(shown.HTML); m != "" && spec.Markdown != "" && !bytes.Contains(event.Data, []byte(`""`)) {
		return fmt.Errorf("the HTML has the empty paragraph %s", m)
	}
	return nil
}

// emptyParagraph is what a condition that does not hold leaves of a paragraph.
var emptyParagraph = regexp.MustCompile(`<(p|li|h[1-6])[^>]*>\s*</(p|li|h[1-6])>`)

// recipient makes somebody of whom anything that may be unknown may be unknown.
func (m *maker) recipient(t *testing.T, u use, spec *document.TemplateSpec) *render.Recipient {
	t.Helper()
	r := &render.Recipient{Address: "ada@example.com", ID: "ada", Date: time.Unix(1_800_000_000, 0)}
	locales := append([]string{"", "en-GB", "ja", "ar-EG"}, slices.Sorted(maps.Keys(spec.Locales))...)
	r.Locale = locales[m.random.IntN(len(locales))]
	zones := []string{"", "Europe/London", "Asia/Tokyo"}
	r.TimeZone = zones[m.random.IntN(len(zones))]
	attributes := []string{"", "{}", `{"name":"Ada <b>"}`, `{"name":null,"device":"watch"}`, `{"name":"Bo","region":"Wien","n":3}`}
	r.Attributes = json.RawMessage(attributes[m.random.IntN(len(attributes))])
	if u.topic == "" {
		r.Data = json.RawMessage(`{"name":"Ada"}`)
		return r
	}
	for n := range 1 + m.random.IntN(4) {
		s := render.Subscription{Row: fanfare.RowID(n + 1), ID: fmt.Sprintf("sub-%d", n)}
		if len(u.params) > 0 && m.random.IntN(2) == 0 {
			rule := m.random.IntN(len(u.params))
			params := map[string]any{}
			for _, name := range slices.Sorted(maps.Keys(u.params[rule])) {
				params[name] = map[string]any{"number": 4.5, "string": strings.Repeat("x", n), "strings": []string{"a", "b"}, "bool": true}[u.params[rule][name]]
			}
			s.Rule, s.Params = fmt.Sprintf("rule-%d", rule), asJSON(t, params)
		}
		if m.random.IntN(2) == 0 {
			s.Data = json.RawMessage(`{"device":"watch"}`)
		}
		r.Subscriptions = append(r.Subscriptions, s)
	}
	return r
}

func asJSON(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func asValue(t *testing.T, b json.RawMessage) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A number that stands before a word is one of plural: "1 changes" is what people read
// otherwise.
func TestExamplesWriteNumbersOfThingsWithPlural(t *testing.T) {
	bare := regexp.MustCompile(`\{\{-? *(count|more)( \| number)? *-?\}\}`)
	ofAnother := regexp.MustCompile(`\.(ja|ar|cy)\.`)
	var files []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md", "examples/*/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if ofAnother.MatchString(file) { // a number stands alone there, or has one form
			continue
		}
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(b), "\n") {
			if found := bare.FindString(line); found != "" && !strings.HasPrefix(line, "| `") {
				t.Errorf("%s:%d: %s: write it with plural", file, n+1, found)
			}
		}
	}
}
