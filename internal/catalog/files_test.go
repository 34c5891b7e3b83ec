package catalog

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func TestFilesDifferByTheirNamesAndWhatTheyAre(t *testing.T) {
	file := func(name, text string) TemplateFile {
		return TemplateFile{Name: name, Type: "text/plain", Size: len(text), SHA256: fanfare.SumOf([]byte(text))}
	}
	with := func(images map[string]TemplateFile, files ...TemplateFile) TemplateParts {
		return TemplateParts{Subject: "s", TemplateFiles: TemplateFiles{Attachments: files, Images: images}}
	}
	welsh := with(nil, file("a.txt", "a"))
	welsh.Locales = map[string]TemplateLocale{"cy": {TemplateWords: TemplateWords{Subject: "t", TemplateFiles: TemplateFiles{Attachments: []TemplateFile{file("b.txt", "b")}}}}}
	other := welsh
	other.Locales = map[string]TemplateLocale{"cy": {TemplateWords: TemplateWords{Subject: "t", TemplateFiles: TemplateFiles{Attachments: []TemplateFile{file("b.txt", "bb")}}}}}
	a := with(nil, file("a.txt", "a"), file("b.txt", "b"))
	for name, c := range map[string]struct {
		before, after TemplateParts
		want          string
	}{
		"nothing":             {a, a, ""},
		"one more":            {with(nil, file("a.txt", "a")), a, "attachments/b.txt:  -> text/plain, 1 bytes, SHA-256 3e23"},
		"one less":            {a, with(nil, file("a.txt", "a")), "attachments/b.txt: text/plain, 1 bytes, SHA-256 3e23"},
		"another size":        {a, with(nil, file("a.txt", "a"), file("b.txt", "bbb")), "attachments/b.txt: text/plain, 1 bytes, SHA-256 3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d -> text/plain, 3 bytes,"},
		"another order":       {a, with(nil, file("b.txt", "b"), file("a.txt", "a")), "attachments: a.txt, b.txt -> b.txt, a.txt"},
		"an image":            {a, with(map[string]TemplateFile{"logo": file("logo.png", "x")}, a.Attachments...), "images/logo:  -> logo.png, text/plain, 1 bytes,"},
		"one of a language":   {welsh, other, "locales/cy/attachments/b.txt: text/plain, 1 bytes, SHA-256 3e23"},
		"a word, and no file": {a, TemplateParts{Subject: "t", TemplateFiles: a.TemplateFiles}, "subject: s -> t"},
	} {
		var got []string
		for _, f := range TemplateChanges(c.before, c.after) {
			got = append(got, f.Field+": "+f.Old+" -> "+f.New)
		}
		if all := strings.Join(got, "; "); !strings.HasPrefix(all, c.want) || c.want == "" != (all == "") || len(got) > 1 {
			t.Errorf("%s: %q, want %q", name, all, c.want)
		}
	}
	if len(a.AllFiles()) != 2 || len(welsh.AllFiles()) != 2 {
		t.Error("files are missing")
	}
}
