package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/emersion/go-message"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render/mime"
)

// contents has the bytes of files by their checksum.
type contents map[fanfare.Sum][]byte

func (c contents) file(name, mediaType, image, content string) fanfare.File {
	f := fanfare.File{Name: name, Type: mediaType, Image: image, Size: len(content), Sum: fanfare.SumOf([]byte(content))}
	c[f.Sum] = []byte(content)
	return f
}

func (c contents) enclose(of mime.FileSet) (*mime.EncodedFiles, error) {
	return of.Encode(func(f *fanfare.File) ([]byte, error) {
		content, ok := c[f.Sum]
		if !ok {
			return nil, fmt.Errorf("%s is not kept", f.Name)
		}
		return content, nil
	})
}

const (
	aLogo     = "\x89PNG\r\n\x1a\nlogo"
	aMap      = "\x89PNG\r\n\x1a\nmap"
	aDocument = "%PDF-1.7\n.\r\n..\r\n--=_mixed\r\n"
)

func TestMessagesWithFilesEqualTheGoldenFiles(t *testing.T) {
	kept := contents{}
	logo, plan := kept.file("logo.png", "image/png", "logo", aLogo), kept.file("Übersicht.png", "image/png", "map", aMap)
	terms, table := kept.file("Terms & \"Conditions\".pdf", "application/pdf", "", aDocument), kept.file("Preise für Ödön.csv", "text/csv", "", "a;ü\n1;2\n")
	long := kept.file(strings.Repeat("東京都", 30)+".txt", "text/plain", "", "")
	html := `<p>{{ subscriber.id }} <img src="cid:logo" alt="Logo"> <img alt="Map" SRC='cid:map'></p>`
	for _, tt := range []struct {
		name, tree string
		source     Source
		more       []fanfare.File
	}{
		{name: "files-all", source: Source{Text: "Hi {{ subscriber.id }}", HTML: html, Files: []fanfare.File{logo, terms, plan, table, long}},
			tree: "mixed(alternative(text/plain related(text/html logo.png Übersicht.png)) " + terms.Name + " " + table.Name + " " + long.Name + ")"},
		{name: "files-attached", source: Source{Text: "--=_mixed\n--=_mixed--\n"}, more: []fanfare.File{terms},
			tree: "mixed(text/plain " + terms.Name + ")"},
		{name: "files-attached-html", source: Source{Text: "x", HTML: "y", Files: []fanfare.File{terms}}, more: []fanfare.File{table},
			tree: "mixed(alternative(text/plain text/html) " + terms.Name + " " + table.Name + ")"},
		{name: "files-shown", source: Source{Text: "x", HTML: html, Files: []fanfare.File{logo, plan}},
			tree: "alternative(text/plain related(text/html logo.png Übersicht.png))"},
		{name: "files-shown-alone", source: Source{HTML: `<img src="cid:logo" alt="">`, Files: []fanfare.File{logo}},
			tree: "related(text/html logo.png)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMailing(t, tt.source, `{}`)
			m.Files, m.EncodeFiles = tt.more, kept.enclose
			if err := m.Template.CheckFiles(1 << 20); err != nil {
				t.Fatal(err)
			}
			message := write(t, m, newRecipient())
			raw := slices.Concat(message.Body, message.Attachments)
			files := slices.Concat(tt.source.Files, tt.more)
			if got := tree(t, raw, kept, files); got != tt.tree {
				t.Errorf("read again it is\n%s, want\n%s", got, tt.tree)
			}
			if most := mime.EncodedSize(files); len(message.Attachments) > most+128 {
				t.Errorf("%d bytes, and %d were foreseen", len(message.Attachments), most)
			}
			for line := range strings.SplitSeq(string(message.Attachments), "\r\n") {
				if strings.HasPrefix(line, ".") || len(line) > wantedLine || !isPlainASCII(line) || strings.ContainsAny(line, "\r\n") {
					t.Errorf("line %q", line)
				}
			}
			golden(t, tt.name, raw)
		})
	}
}

// tree reads a message with go-message, compares its files with the originals and returns the
// structure of its parts.
func tree(t tester, raw []byte, kept contents, files []fanfare.File) string {
	t.Helper()
	e, err := message.Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	html := ""
	var walk func(*message.Entity) string
	walk = func(e *message.Entity) string {
		mediaType, params, _ := e.Header.ContentType()
		if r := e.MultipartReader(); r != nil {
			var parts []string
			for {
				part, err := r.NextPart()
				if errors.Is(err, io.EOF) {
					if mediaType == "multipart/related" && params["type"] != "text/html" {
						t.Fatalf("related to %s", params["type"])
					}
					return strings.TrimPrefix(mediaType, "multipart/") + "(" + strings.Join(parts, " ") + ")"
				}
				if err != nil {
					t.Fatalf("%v in %q", err, raw)
				}
				parts = append(parts, walk(part))
			}
		}
		body, err := io.ReadAll(e.Body)
		if err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		disposition, named, err := e.Header.ContentDisposition()
		if err != nil {
			if mediaType == "text/html" {
				html = string(body)
			}
			return mediaType
		}
		at := slices.IndexFunc(files, func(f fanfare.File) bool { return f.Name == named["filename"] })
		if at < 0 {
			t.Fatalf("no file is named %q", named["filename"])
		}
		f := &files[at]
		if mediaType != f.Type || !bytes.Equal(body, kept[f.Sum]) && (!strings.HasPrefix(mediaType, "text/") || params["charset"] != "utf-8") {
			t.Fatalf("%s: %s with %q", f.Name, mediaType, body)
		}
		if want := map[bool]string{true: "attachment", false: "inline"}[f.Image == ""]; disposition != want {
			t.Fatalf("%s is %s", f.Name, disposition)
		}
		if id := e.Header.Get("Content-Id"); f.Image != "" && (id != "<"+f.ContentID()+">" || !strings.Contains(html, "cid:"+f.ContentID())) {
			t.Fatalf("%s has the id %s, and the HTML is %s", f.Name, id, html)
		}
		return f.Name
	}
	return walk(e)
}

func TestMessagesShareTheMemoryOfFiles(t *testing.T) {
	kept := contents{}
	m := newMailing(t, Source{Text: "{{ subscriber.id }}", Files: []fanfare.File{kept.file("a.pdf", "application/pdf", "", aDocument)}}, `{}`)
	m.EncodeFiles = kept.enclose
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	first, buf, err := w.Write(nil, newRecipient())
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := w.Write(buf, newRecipient())
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Attachments) == 0 || unsafe.SliceData(first.Attachments) != unsafe.SliceData(second.Attachments) {
		t.Error("each message has files of its own")
	}
	shown, err := w.Preview(newRecipient())
	if err != nil || len(shown.Files) != 1 || shown.Files[0].Name != "a.pdf" {
		t.Errorf("a preview shows %+v, %v", shown.Files, err)
	}
}

func TestFilesWithTheSameNameDifferByContent(t *testing.T) {
	kept := contents{}
	message := func(content string, multicast bool) string {
		m := newMailing(t, Source{HTML: `<img src="cid:logo" alt="">`, Files: []fanfare.File{kept.file("logo.png", "image/png", "logo", content)}}, `{}`)
		m.EncodeFiles, m.Multicast, m.UnsubscribeURL = kept.enclose, multicast, nil
		l := write2(t, m)
		return string(l.Body) + string(l.Attachments)
	}
	for _, multicast := range []bool{false, true} {
		one, same, other := message(aLogo, multicast), message(aLogo, multicast), message(aMap, multicast)
		id := func(s string) string { _, after, _ := strings.Cut(s, "cid:"); return after[:20] }
		if one != same || one == other || id(one) == id(other) {
			t.Errorf("of the same bytes %v, of others %v", one == same, one == other)
		}
		header := func(s string) string { _, after, _ := strings.Cut(s, "Message-ID: "); return after[:60] }
		if multicast == (header(one) == header(other)) {
			t.Errorf("Message-ID %s, of other bytes %s", header(one), header(other))
		}
	}
}

func write2(t *testing.T, m MailBatch) driver.Message {
	t.Helper()
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	message, _, err := w.Write(nil, newRecipient())
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func TestVariantHasItsOwnFilesOrThoseOfItsTemplate(t *testing.T) {
	kept := contents{}
	logo, terms := kept.file("logo.png", "image/png", "logo", aLogo), kept.file("terms.pdf", "application/pdf", "", aDocument)
	welsh, telerau := kept.file("logo-cy.png", "image/png", "logo", aMap), kept.file("telerau.pdf", "application/pdf", "", aDocument)
	m := newMailing(t, Source{Subject: "Terms", Text: "x", HTML: `<img src="cid:logo" alt="">`, Files: []fanfare.File{logo, terms}, Variants: []Variant{
		{Locale: "cy", Subject: "Telerau", Files: []fanfare.File{telerau, welsh}},
		{Locale: "de", Subject: "Bedingungen"},
		{Locale: "fr", Text: "y"},
	}}, `{}`)
	m.EncodeFiles = kept.enclose
	if err := m.Template.CheckFiles(1 << 20); err != nil {
		t.Fatal(err)
	}
	if names := m.Template.UnusedImages(); len(names) > 0 {
		t.Errorf("nothing shows %s", names)
	}
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	for locale, want := range map[string]string{
		"en": "mixed(alternative(text/plain related(text/html logo.png)) terms.pdf)",
		"cy": "mixed(alternative(text/plain related(text/html logo-cy.png)) telerau.pdf)",
		"de": "mixed(alternative(text/plain related(text/html logo.png)) terms.pdf)",
		"fr": "mixed(text/plain terms.pdf)", // without HTML nothing is shown
	} {
		r := newRecipient()
		r.Locale = locale
		message, _, err := w.Write(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		if got := tree(t, slices.Concat(message.Body, message.Attachments), kept, []fanfare.File{logo, terms, welsh, telerau}); got != want {
			t.Errorf("%s: %s, want %s", locale, got, want)
		}
	}
}

func TestErrorsNameTheWrongFile(t *testing.T) {
	kept := contents{}
	logo, terms := kept.file("logo.png", "image/png", "logo", aLogo), kept.file("terms.pdf", "application/pdf", "", aDocument)
	big := terms
	big.Size = 3 << 20
	for name, c := range map[string]struct {
		source  Source
		pointer string
		line    int
		column  int
		message string
	}{
		"an image that is not there":    {Source{HTML: "<p>\n{% if event.a %}\n<img src=\"cid:lgo\">{% endif %}", Files: []fanfare.File{logo}}, "/templates/quake/html", 3, 11, "cid:lgo"},
		"one in a style":                {Source{HTML: `<p style="background: url('cid:bg')">`}, "/templates/quake/html", 1, 28, "cid:bg"},
		"one in Markdown":               {Source{Markdown: "Hi\n\n![A](cid:a)"}, "/templates/quake/markdown", 3, 6, "cid:a"},
		"a name that is a value":        {Source{HTML: `<img src="cid:{{ event.a }}">`}, "/templates/quake/html", 1, 11, "must be literal"},
		"images and no HTML":            {Source{Text: "x", Files: []fanfare.File{logo}}, "/templates/quake/images", 0, 0, "no HTML"},
		"two of a name":                 {Source{Text: "x", Files: []fanfare.File{terms, terms}}, "/templates/quake/attachments", 0, 0, "two files"},
		"too many":                      {Source{Text: "x", Files: slices.Repeat([]fanfare.File{terms}, 21)}, "/templates/quake/attachments", 0, 0, "two files"},
		"too much":                      {Source{Text: "x", Files: []fanfare.File{big}}, "/templates/quake/attachments", 0, 0, "at most 2000000 are allowed"},
		"too much in a variant":         {Source{Text: "x", Variants: []Variant{{Locale: "cy", Subject: "y", Files: []fanfare.File{big}}}}, "/templates/quake/locales/cy/attachments", 0, 0, "at most 2000000 are allowed"},
		"a variant shows what is not":   {Source{Text: "x", Variants: []Variant{{Locale: "cy", HTML: `<img src=cid:x>`}}}, "/templates/quake/locales/cy/html", 1, 10, "cid:x"},
		"words that look like an image": {Source{HTML: `<p>src="cid:a" <a href="https://a.example/?cid:b">acid:c</a>`}, "", 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := newMailing(t, c.source, `{}`).Template.CheckFiles(2_000_000)
			e, _ := errors.AsType[*fanfare.Error](err)
			switch {
			case c.message == "" && err != nil && !strings.Contains(err.Error(), "cid:a"):
				t.Error(err)
			case c.message == "":
			case e == nil || e.Pointer != c.pointer || e.Line != c.line || e.Column != c.column || !strings.Contains(e.Message, c.message) || e.Hint == "":
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestUnusedInlineImagesAreReported(t *testing.T) {
	kept := contents{}
	m := newMailing(t, Source{HTML: `<img src="cid:a">`, Files: []fanfare.File{kept.file("a.png", "image/png", "a", "a"), kept.file("b.png", "image/png", "b", "b")},
		Variants: []Variant{{Locale: "cy", HTML: `<img src="cid:c">`, Files: []fanfare.File{kept.file("c.png", "image/png", "c", "c")}}}}, `{}`)
	if got := m.Template.UnusedImages(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%s", got)
	}
}
