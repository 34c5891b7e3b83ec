package document_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/catalog/document"
)

func TestParseDocumentReadsTemplateVariants(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cy.md"), []byte("# Llifogydd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const text = `
service: weather
templates:
  flood:
    subject: Flood
    text: A flood.
    lang: en-GB
    locales:
      cy:
        subject: Llifogydd
        markdown_file: cy.md
        devices:
          watch: {text: Llif}
      pt-BR: {text: Enchente}
    devices:
      watch: {text: Flood!}
`
	d, err := document.ParseDocument([]byte(text), dir)
	if err != nil {
		t.Fatal(err)
	}
	flood := d.Templates["flood"]
	cy := flood.Locales["cy"]
	if cy.Subject != "Llifogydd" || cy.Markdown != "# Llifogydd\n" || cy.Devices["watch"].Text != "Llif" || flood.Locales["pt-BR"].Text != "Enchente" || flood.Devices["watch"].Text != "Flood!" {
		t.Errorf("%+v", flood)
	}
	for wrong, want := range map[string]string{
		"{cy: {subjekt: a}}":                  "unknown field",
		"{cy: {text: a, text_file: cy.md}}":   "both text and text_file",
		"{cy: {devices: {watch: {lang: a}}}}": "unknown field",
		"[cy]":                                "",
	} {
		_, err := document.ParseDocument([]byte("service: weather\ntemplates:\n  flood:\n    subject: a\n    text: b\n    locales: "+wrong+"\n"), dir)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
