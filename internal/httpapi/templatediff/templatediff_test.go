package templatediff

import (
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/catalog"
)

func versionOf(number int, state string, parts catalog.TemplateParts) *catalog.TemplateVersion {
	return &catalog.TemplateVersion{TemplateSource: &catalog.TemplateSource{Number: uint32(number), Name: "story", Version: number, TemplateParts: parts}, State: state}
}

func TestVersionsThatAreNotNamedAreThoseThatPeopleMean(t *testing.T) {
	none := catalog.TemplateParts{}
	first, second, third, draft := versionOf(1, "earlier", none), versionOf(2, "published", none), versionOf(3, "earlier", none), versionOf(4, "draft", none)
	back := versionOf(2, "published", none)
	back.Number = 9 // published again, after version 3
	for name, c := range map[string]struct {
		all      []*catalog.TemplateVersion
		from, to string
		want     string
	}{
		"the draft":                {[]*catalog.TemplateVersion{first, second, draft}, "", "", "2 4"},
		"a first draft":            {[]*catalog.TemplateVersion{versionOf(1, "draft", none)}, "", "", "0 1"},
		"the last publication":     {[]*catalog.TemplateVersion{first, second}, "", "", "1 2"},
		"after going back":         {[]*catalog.TemplateVersion{first, back, third}, "", "", "3 2"},
		"the first version":        {[]*catalog.TemplateVersion{versionOf(1, "published", none)}, "", "", "0 1"},
		"what was deleted":         {[]*catalog.TemplateVersion{first, third}, "", "", "0 3"},
		"from a version":           {[]*catalog.TemplateVersion{first, second, draft}, "1", "", "1 4"},
		"to what is published":     {[]*catalog.TemplateVersion{first, second, draft}, "", "published", "1 2"},
		"two versions":             {[]*catalog.TemplateVersion{first, second, third, draft}, "3", "1", "3 1"},
		"a draft that is not":      {[]*catalog.TemplateVersion{first, second}, "draft", "", ""},
		"a version that is not":    {[]*catalog.TemplateVersion{first, second}, "", "7", ""},
		"what is no version":       {[]*catalog.TemplateVersion{first, second}, "", "newest", ""},
		"version 0":                {[]*catalog.TemplateVersion{first, second}, "0", "", ""},
		"from what is not, deeper": {[]*catalog.TemplateVersion{first}, "published", "1", ""},
	} {
		from, to, err := Versions(c.all, "story", c.from, c.to)
		got := ""
		if err == nil {
			got = strings.TrimSpace(string(rune('0'+Ref(from).Version)) + " " + string(rune('0'+Ref(to).Version)))
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

func TestPartsThatDifferAreShownInTheOrderOfATemplate(t *testing.T) {
	was := versionOf(1, "published", catalog.TemplateParts{Subject: "one", Text: "a\nb\nc\n", HTML: "<p>same</p>", Partials: map[string]string{"foot": "x"}})
	is := versionOf(2, "draft", catalog.TemplateParts{Subject: "two", Text: "a\nB\nc\n", HTML: "<p>same</p>", Layout: "plain",
		TemplateVariants: catalog.TemplateVariants{
			Locales: map[string]catalog.TemplateLocale{"cy": {TemplateWords: catalog.TemplateWords{Subject: "dau", Text: "t"}, Devices: map[string]catalog.TemplateWords{"watch": {Text: "w"}}}},
		}})
	var parts []string
	for _, d := range Parts(was, is) {
		parts = append(parts, d.Part)
	}
	if want := []string{"subject", "text", "layout", "partials/foot", "locales/cy/subject", "locales/cy/text", "locales/cy/devices/watch/text"}; !slices.Equal(parts, want) {
		t.Errorf("parts %q, want %q", parts, want)
	}
	if got, want := Parts(was, is)[1].Diff, "--- story@1/text\n+++ story@2 (draft)/text\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Parts(nil, was); len(got) != 4 || !strings.HasPrefix(got[0].Diff, "--- /dev/null\n+++ story@1/subject\n@@ -0,0 +1 @@\n+one\n") {
		t.Errorf("from nothing: %+v", got)
	}
	if got := Parts(was, was); len(got) != 0 {
		t.Errorf("nothing differs: %+v", got)
	}
	ends := versionOf(2, "draft", catalog.TemplateParts{Text: "a\n"})
	if got := Parts(versionOf(1, "published", catalog.TemplateParts{Text: "a"}), ends)[0].Diff; !strings.Contains(got, "No newline") {
		t.Errorf("an end of line is no difference in %q", got)
	}
}

func TestFilesThatDifferAreShownALineEach(t *testing.T) {
	file := func(name string, size int) catalog.TemplateFile {
		return catalog.TemplateFile{Name: name, Type: "application/pdf", Size: size}
	}
	with := func(files ...catalog.TemplateFile) catalog.TemplateParts {
		return catalog.TemplateParts{Subject: "s", TemplateFiles: catalog.TemplateFiles{Attachments: files, Images: map[string]catalog.TemplateFile{"logo": {Name: "l.png", Type: "image/png", Size: 9}}}}
	}
	diffs := Parts(versionOf(1, "published", with(file("a.pdf", 1), file("b.pdf", 2))), versionOf(2, "draft", with(file("a.pdf", 1), file("b.pdf", 3))))
	if len(diffs) != 1 || diffs[0].Part != "attachments" {
		t.Fatalf("%+v", diffs)
	}
	for _, line := range []string{" a.pdf: application/pdf, 1 bytes, SHA-256 ", "-b.pdf: application/pdf, 2 bytes, SHA-256 ", "+b.pdf: application/pdf, 3 bytes, SHA-256 "} {
		if !strings.Contains(diffs[0].Diff, "\n"+line) {
			t.Errorf("no line %q in\n%s", line, diffs[0].Diff)
		}
	}
	if first := Parts(nil, versionOf(1, "published", with())); len(first) != 2 || first[1].Part != "images" || !strings.Contains(first[1].Diff, "+logo: l.png, image/png, 9 bytes") {
		t.Errorf("%+v", first)
	}
}
