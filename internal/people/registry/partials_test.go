package registry_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestTemplatesKeepThePartialsAndTheLayoutThatTheyName(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "foot.md"), []byte("See {% render \"sign\" %}"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := document.ParseDocument([]byte(`
service: s
partials:
  foot: {file: foot.md}
  sign: {text: "The team"}
  other: {text: "unused"}
layouts:
  brand: {text: "<html>{{ content }}</html>"}
templates:
  a: {subject: S, layout: brand, markdown: 'x', locales: {cy: {devices: {watch: {markdown: '{% render "foot" %}'}}}}}
  b: {subject: S, markdown: 'y'}
`), dir)
	if err != nil {
		t.Fatal(err)
	}
	a, b := d.Templates["a"], d.Templates["b"]
	if len(a.Partials) != 2 || a.Partials["foot"] != "See {% render \"sign\" %}" || a.Partials["sign"] != "The team" || a.Page != "<html>{{ content }}</html>" {
		t.Errorf("a has %v and the page %q", a.Partials, a.Page)
	}
	if b.Partials != nil || b.Page != "" {
		t.Errorf("b has %v and the page %q", b.Partials, b.Page)
	}
}

func TestAChangedPartialMakesANewVersionOfWhatNamesIt(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	document := func(sign string) string {
		return "service: s\npartials: {sign: {text: " + sign + "}}\ntemplates: {a: {subject: S, markdown: '{% render \"sign\" %}'}, b: {subject: S, markdown: y}}"
	}
	apply(t, r, document("one"))
	apply(t, r, document("two"))
	for name, version := range map[string]int{"a": 2, "b": 1} {
		number, _ := r.TemplateVersion("s", name)
		if src, _ := r.Template(number); src.Version != version {
			t.Errorf("%s is version %d, not %d", name, src.Version, version)
		}
	}
	var said []string
	for _, version := range r.Configuration().TemplateVersions("s", "a") {
		said = append(said, version.Partials["sign"])
	}
	if !slices.Equal(said, []string{"one", "two"}) {
		t.Errorf("the versions say %v", said)
	}
}
