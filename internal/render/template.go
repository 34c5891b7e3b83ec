package render

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/bodies"
)

// Limits of a template, in bytes.
const (
	MaxSubjectBytes = 1 << 10   // of the subject's source
	MaxBodyBytes    = 512 << 10 // of the text's and of the HTML's source, each
	maxRenderBytes  = 4 << 20   // of one rendered part
)

// Source is a template as its author wrote it. A subject and text or HTML, or
// both, are for mail, and JSON is for programs; one of the two is required.
type Source struct {
	Name    string
	Version int
	Subject string
	Text    string // "": it is made from the HTML
	HTML    string
	JSON    string

	Markdown string // in place of HTML
	Layout   string // of those that are built in, "": what is written is the whole HTML
	Page     string // a layout of the author's own in place of these: HTML with {{ content }}
	Lang     string // the language that it is written in, BCP 47, or an output that tells it; "" is English

	Partials map[string]string // what {% render "name" %} puts in
	Syntax   string            // liquid, which "" is, or notify

	Files []fanfare.File // that go with each message

	Variants []Variant
}

// A Template is a compiled Source, safe for concurrent use.
type Template struct {
	Name    string
	Version int

	subject, text, html, json *part // nil: it has none

	files  []fanfare.File
	images map[string]string // Content-IDs by the names under which HTML shows them
	same   bool              // a variant that has the files of its template

	lang   string // a language tag, "": English
	speech speech
	within string // where it stands in the document, of a variant

	variants []variant
	widest   speech // of itself and its variants
	byDevice bool

	uncertain, opaque map[string]bool // variables, see noteUncertain
}

// Compile checks the source and makes it ready. The error is a *fanfare.Error
// with the pointer /templates/NAME/PART and the line; where several parts are
// wrong, the others are in its Details.
func Compile(src Source) (*Template, error) {
	t, wrong := compile(src, "")
	if wrong != nil {
		return nil, wrong
	}
	t.widest = t.speech
	if err := t.vary(src); err != nil {
		return nil, err
	}
	t.noteUncertain()
	if event, several := t.reads(); event != nil && several != nil {
		return nil, t.unfit(event, "a digest, which has "+several.path.root+", tells of several events", "write {% for item in items %} and read item.event, item.meta")
	}
	return t, nil
}

// compile compiles the template, or one of its variants, which stands within it.
func compile(src Source, within string) (*Template, *fanfare.Error) {
	t := &Template{Name: src.Name, Version: src.Version, within: within, files: src.Files, images: shows(src.Files)}
	if !strings.Contains(src.Lang, "{{") {
		t.lang = src.Lang
	}
	src, fault := src.liquid(t.pointer)
	if fault != nil {
		return nil, fault
	}
	written := src.Text != "" || src.HTML != "" || src.Markdown != ""
	onlyJSON := src.JSON != "" && src.Subject == "" && !written
	if !written && !onlyJSON {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: t.pointer(""), Message: "the template has neither text nor html nor markdown", Hint: "json alone is for channels to programs, and has no subject"}
	}
	if strings.TrimSpace(src.Subject) == "" && !onlyJSON {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: t.pointer("subject"), Message: "the template has no subject"}
	}
	var wrong []*fanfare.Error
	compile := func(name, source string, mode mode) *part {
		p, err := compilePart(name, source, nil, mode, nil)
		if err != nil {
			err.Pointer = t.pointer(name)
			wrong = append(wrong, err)
		}
		return p
	}
	if !onlyJSON {
		t.subject = compile("subject", src.Subject, plain)
	}
	text, html, faults := t.compose(src)
	t.text, t.html = text, html
	wrong = append(wrong, faults...)
	if src.JSON != "" {
		t.json = compile("json", src.JSON, quoted)
	}
	if len(wrong) > 0 {
		return nil, together(t.place(wrong))
	}
	for _, p := range t.parts() {
		t.speech = max(t.speech, p.speech)
		p.owner = t
	}
	return t, nil
}

// parts lists the parts that the template has.
func (t *Template) parts() []*part {
	all := make([]*part, 0, 4)
	for _, p := range []*part{t.subject, t.text, t.html, t.json} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// pointer names a part of the template as its author finds it in the document.
func (t *Template) pointer(part string) string {
	return t.inside(bodies.Pointer(t.Name, part))
}

// at says where in the template an error of a part is, which is about text.
func (t *Template) at(p *part, err *fanfare.Error, text string) *fanfare.Error {
	err.Pointer = p.owner.pointer(p.name)
	p.point(err, text)
	err.Pointer = p.owner.inside(err.Pointer)
	return err
}

// rendered is at for an error of a part that was rendered.
func (t *Template) rendered(p *part, err *fanfare.Error) *fanfare.Error {
	name, ok := strings.CutPrefix(err.Message, undefined)
	if !ok {
		name = ""
	}
	return t.at(p, err, name)
}

// gather makes one error of many: the first, with the others as its details.
func gather(wrong []*fanfare.Error) error {
	if len(wrong) == 0 {
		return nil
	}
	return together(wrong)
}

func together(wrong []*fanfare.Error) *fanfare.Error {
	// A subject that is the title of the HTML as well is wrong once.
	wrong = slices.CompactFunc(wrong, func(a, b *fanfare.Error) bool {
		return a.Pointer == b.Pointer && a.Line == b.Line && a.Column == b.Column && a.Message == b.Message
	})
	wrong[0].Details = append(wrong[0].Details, wrong[1:]...)
	return wrong[0]
}

// invalid makes the error that the checks of this package return.
func invalid(line int, hint, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Line: line, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// checkSource refuses what no template may be made of.
func checkSource(source string, limit int) *fanfare.Error {
	switch {
	case len(source) > limit:
		return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("%d bytes, over the limit of %d", len(source), limit)}
	case !utf8.ValidString(source):
		return invalid(0, "save the file as UTF-8", "not valid UTF-8")
	case strings.IndexByte(source, 0) >= 0:
		return invalid(0, "", "contains a NUL character")
	}
	return nil
}
