package render

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestTranslationGuideTemplateWorks(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/localization.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	type words struct{ Subject, Text string }
	var document struct {
		Templates map[string]struct {
			Subject, Text, Lang string
			Locales, Devices    map[string]words
		}
	}
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	flood := document.Templates["flood"]
	src := Source{Name: "flood", Subject: flood.Subject, Text: flood.Text, Lang: flood.Lang}
	for tag, w := range flood.Locales {
		src.Variants = append(src.Variants, Variant{Locale: tag, Subject: w.Subject, Text: w.Text})
	}
	for device, w := range flood.Devices {
		src.Variants = append(src.Variants, Variant{Device: device, Subject: w.Subject, Text: w.Text})
	}
	m := newMailing(t, Source{Text: "x"}, `{"area":"Conwy","when":"2026-11-20T10:00:00Z","rivers":2}`)
	if m.Template, err = Compile(src); err != nil {
		t.Fatal(err)
	}
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ locale, device, subject, text string }{
		{"en-GB", "", "Flood warning: Conwy", "20 November 2026: 2 rivers."},
		{"en-US", "", "Flood warning: Conwy", "November 20, 2026: 2 rivers."},
		{"cy", "watch", "Rhybudd llifogydd: Conwy", "20 Tachwedd 2026: 2 afon."},
		{"ar", "", "تحذير من فيضان: Conwy", "20 November 2026: 2 rivers."},
		{"fr", "watch", "Flood warning: Conwy", "Flood: Conwy"},
	} {
		r := newRecipient()
		r.Locale, r.Data = tt.locale, []byte(`{"device":"`+tt.device+`"}`)
		p, err := w.Preview(r)
		if err != nil || p.Subject != tt.subject || strings.TrimSpace(p.Text) != tt.text {
			t.Errorf("%s on %q: %q, %q, %v", tt.locale, tt.device, p.Subject, p.Text, err)
		}
	}
}
