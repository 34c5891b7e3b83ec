package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/bodies"
	"fanfare.dev/fanfare/internal/render/liquid"
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

	subject, text, html, json *templatePart // nil: it has none

	files         []fanfare.File
	images        map[string]string // Content-IDs by the names under which HTML shows them
	inheritsFiles bool              // a variant that has the files of its template

	language  string // a language tag, "": English
	localized liquid.LocalizationNeed
	path      string // where it stands in the document, of a variant

	variants     []variant
	localizedAny liquid.LocalizationNeed // of itself and its variants
	byDevice     bool

	uncertain, opaque map[string]bool // variables, see noteUncertain
}

// A templatePart is a compiled part with the template that says it, of which others may
// take it.
type templatePart struct {
	*liquid.Part
	owner *Template
}

// Compile checks the source and makes it ready. The error is a *fanfare.Error
// with the pointer /templates/NAME/PART and the line; where several parts are
// wrong, the others are in its Details.
func Compile(src Source) (*Template, error) {
	t, wrong := compile(src, "")
	if wrong != nil {
		return nil, wrong
	}
	t.localizedAny = t.localized
	if err := t.compileVariants(src); err != nil {
		return nil, err
	}
	t.findUncertain()
	if event, several := t.firstReferences(); event != nil && several != nil {
		return nil, t.wrongKind(event, "a digest, which has "+several.path.Root+", tells of several events", "write {% for item in items %} and read item.event, item.meta")
	}
	return t, nil
}

// compile compiles the template, or one of its variants, which stands within it.
func compile(src Source, within string) (*Template, *fanfare.Error) {
	t := &Template{Name: src.Name, Version: src.Version, path: within, files: src.Files, images: contentIDs(src.Files)}
	if !strings.Contains(src.Lang, "{{") {
		t.language = src.Lang
	}
	src, fault := src.toLiquid(t.pointer)
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
	compile := func(name, source string, mode liquid.Mode) *templatePart {
		p, err := liquid.CompilePart(name, source, nil, mode, nil)
		if err != nil {
			err.Pointer = t.pointer(name)
			wrong = append(wrong, err)
		}
		return &templatePart{Part: p}
	}
	if !onlyJSON {
		t.subject = compile("subject", src.Subject, liquid.Plain)
	}
	text, html, faults := t.compileBodies(src)
	t.text, t.html = text, html
	wrong = append(wrong, faults...)
	if src.JSON != "" {
		t.json = compile("json", src.JSON, liquid.JSON)
	}
	if len(wrong) > 0 {
		return nil, withDetails(t.prefixPointers(wrong))
	}
	for _, p := range t.parts() {
		t.localized = max(t.localized, p.Localized)
		p.owner = t
	}
	return t, nil
}

// parts lists the parts that the template has.
func (t *Template) parts() []*templatePart {
	all := make([]*templatePart, 0, 4)
	for _, p := range []*templatePart{t.subject, t.text, t.html, t.json} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// pointer names a part of the template as its author finds it in the document.
func (t *Template) pointer(part string) string {
	return t.variantPointer(bodies.Pointer(t.Name, part))
}

// setPosition says where in the template an error of a part is, which is about text.
func (t *Template) setPosition(p *templatePart, err *fanfare.Error, text string) *fanfare.Error {
	err.Pointer = p.owner.pointer(p.Name)
	p.SetPosition(err, text)
	err.Pointer = p.owner.variantPointer(err.Pointer)
	return err
}

// setRenderedPosition is at for an error of a part that was rendered.
func (t *Template) setRenderedPosition(p *templatePart, err *fanfare.Error) *fanfare.Error {
	name, ok := strings.CutPrefix(err.Message, liquid.UndefinedPrefix)
	if !ok {
		name = ""
	}
	return t.setPosition(p, err, name)
}

// joinErrors makes one error of many: the first, with the others as its details.
func joinErrors(wrong []*fanfare.Error) error {
	if len(wrong) == 0 {
		return nil
	}
	return withDetails(wrong)
}

func withDetails(wrong []*fanfare.Error) *fanfare.Error {
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

// findUncertain finds the variables of which only a schema could say that they
// exist, and those of which the compiler does not know where they come from.
func (t *Template) findUncertain() {
	t.uncertain, t.opaque = map[string]bool{}, map[string]bool{}
	for _, part := range t.allParts() {
		for _, p := range part.Paths {
			if len(p.Steps) == 0 {
				continue
			}
			name := liquid.QuotePath(p.Text)
			switch p.Root {
			case "event", "sub", liquid.FieldsVariable:
				t.uncertain[name] = true
			case "items":
				if len(p.Steps) > 1 && p.Steps[1].Name == "event" {
					t.uncertain[name] = true
				}
			case "":
				if !strings.HasPrefix(name, "forloop.") {
					t.uncertain[name], t.opaque[name] = true, true
				}
			}
		}
	}
	for _, v := range t.variants {
		v.template.uncertain, v.template.opaque = t.uncertain, t.opaque
	}
}

// missingVariables is what a writer of the template does about variables that are not there.
func (t *Template) missingVariables(tell func(variable string), refuse bool) *liquid.MissingVariables {
	if tell == nil && !refuse {
		return nil
	}
	return &liquid.MissingVariables{Uncertain: t.uncertain, Opaque: t.opaque, OnMissing: tell, Refuse: refuse}
}

// toLiquid is the source in Liquid, line by line.
func (src Source) toLiquid(pointer func(string) string) (Source, *fanfare.Error) {
	switch src.Syntax {
	case "", "liquid":
		return src, nil
	case liquid.SyntaxNotify:
	default:
		err := invalid(0, "write liquid or notify", "unknown syntax %q", src.Syntax)
		err.Pointer = pointer("syntax")
		return src, err
	}
	for _, part := range []*string{&src.Subject, &src.Text, &src.HTML, &src.Markdown, &src.JSON} {
		*part = liquid.FromNotify(*part)
	}
	src.Syntax = ""
	return src, nil
}

// compileBodies compiles the text and the HTML of a source. Text that its author did
// not write is made from the HTML.
func (t *Template) compileBodies(src Source) (text, html *templatePart, wrong []*fanfare.Error) {
	fail := func(name string, err *fanfare.Error) {
		if err.Pointer == "" {
			err.Pointer = t.pointer(name)
		}
		wrong = append(wrong, err)
	}
	take := func(name, source string, made *bodies.Part, m liquid.Mode) *templatePart {
		p, err := liquid.CompilePart(name, source, made, m, t.images)
		if err != nil {
			fail(name, err)
			return nil
		}
		return &templatePart{Part: p}
	}
	if src.Markdown != "" && src.HTML != "" {
		fail("markdown", invalid(0, "the HTML is made of the Markdown", "the template has both markdown and html"))
		return nil, nil, wrong
	}
	if src.Text != "" && len(bodies.PartialNames(src.Text)) == 0 {
		text = take("text", src.Text, nil, liquid.Plain)
	}
	if src.HTML != "" && len(bodies.PartialNames(src.HTML)) == 0 {
		html = take("html", src.HTML, nil, liquid.HTML)
	}
	if err := liquid.CheckSource(src.Markdown, liquid.MaxBodyBytes); err != nil {
		fail("markdown", err)
	}
	of := bodies.Source{Name: t.Name, PathPrefix: t.path, Subject: src.Subject, Markdown: src.Markdown, HTML: src.HTML, Text: src.Text, Layout: src.Layout, Lang: src.Lang, CustomLayout: src.Page, Partials: src.Partials}
	if len(wrong) > 0 || of.IsComplete() {
		return text, html, wrong
	}
	made, faults := bodies.Make(of)
	if len(faults) > 0 {
		return nil, nil, faults
	}
	if made.HTML.Source != src.HTML {
		if html = take("html", made.HTML.Source, &made.HTML, liquid.HTML); html != nil {
			html.locateMissingImages(src, t.pointer)
		}
	}
	if text == nil && len(wrong) == 0 {
		if strings.TrimSpace(made.Text.Source) == "" { // nothing in it is text: HTML alone leaves
			return nil, html, nil
		}
		text = take("text", made.Text.Source, &made.Text, liquid.Plain)
	}
	return text, html, wrong
}

// A Fault is where a template failed for somebody. It names what the template reads
// there, and never a value.
type Fault struct {
	Part      string   // of the document of the template: text, locales/cy/html
	Line      int      // 0: of the part as a whole
	Variables []string // that this line reads
}

// Fault tells where in the template an error of writing a message arose; false where
// the template is not to blame, as of an address.
func (t *Template) Fault(err error) (Fault, bool) {
	wrong, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return Fault{}, false
	}
	part, ok := strings.CutPrefix(wrong.Pointer, bodies.Pointer(t.Name, "")+"/")
	if !ok {
		return Fault{}, false
	}
	fault := Fault{Part: part, Line: wrong.Line}
	if wrong.Line == 0 {
		return fault, true
	}
	for _, p := range t.allParts() {
		for _, read := range p.Paths {
			at := t.setPosition(p, invalid(read.Line, "", ""), read.Text)
			if at.Pointer == wrong.Pointer && at.Line == wrong.Line && !slices.Contains(fault.Variables, read.Text) {
				fault.Variables = append(fault.Variables, read.Text)
			}
		}
	}
	return fault, true
}

func (f Fault) String() string {
	text := f.Part
	if f.Line > 0 {
		text += fmt.Sprintf(", line %d", f.Line)
	}
	if len(f.Variables) > 0 {
		text += ", which reads " + strings.Join(f.Variables, ", ")
	}
	return text
}
