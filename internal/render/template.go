package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/bodies"
	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/notifytext"
)

// A Source is a template as its author wrote it. Mail needs a subject and a body (text, HTML or
// Markdown), webhooks need nothing or JSON. At least one of the two is required.
type Source struct {
	Name    string
	Version int
	Subject string
	Text    string // "": generated from the HTML
	HTML    string
	JSON    string
	SMS     bool // a text message: it has a text and no subject

	Markdown string // instead of HTML
	Layout   string // a built-in layout; "": the HTML is complete
	Page     string // a layout of the author's own, HTML with {{ content }}; instead of Layout
	Lang     string // language of the template: BCP 47, or an output of Liquid; "" is English

	Partials map[string]string // inserted by {% render "name" %}
	Syntax   string            // "" or liquid, or notify
	AsIs     bool              // the HTML stays as it is, no text is generated from it, and the subject may be empty

	Files []fanfare.File // sent with each message

	Variants []Variant

	notify *liquid.NotifyContent // of a Markdown body in the syntax of GOV.UK Notify; set by toLiquid
}

// A Template is a compiled Source. It is safe for concurrent use.
type Template struct {
	Name    string
	Version int

	subject, text, html, json *templatePart // nil if the template has none

	files         []fanfare.File
	images        map[string]string // Content-IDs of the images by name
	inheritsFiles bool              // a variant without files of its own

	language  string // a language tag; "": English
	localized liquid.LocalizationNeed
	path      string // of a variant: its path in the document

	variants     []variant
	localizedAny liquid.LocalizationNeed // of the template and its variants
	byDevice     bool

	uncertain, opaque map[string]bool // names of variables, see findUncertain
}

// A templatePart is a compiled part with the template that it belongs to. Variants without such
// a part use the part of their template.
type templatePart struct {
	*liquid.Part
	owner *Template
}

// Compile compiles a source. The error is a *fanfare.Error with the pointer
// /templates/NAME/PART and the line; if several parts are wrong, the others are in its Details.
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
		return nil, t.wrongKind(event, "the template also uses "+several.path.Root+", and a digest contains several events", "write {% for item in items %}, and use item.event and item.meta")
	}
	return t, nil
}

// compile compiles the template, or the variant at the path within.
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
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: t.pointer(""), Message: "the template has no text, html or markdown", Hint: "add one of them; a template for webhooks has json and no subject"}
	}
	if src.SMS {
		if err := src.checkSMS(t.pointer); err != nil {
			return nil, err
		}
	} else if strings.TrimSpace(src.Subject) == "" && !onlyJSON && !src.AsIs {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: t.pointer("subject"), Message: "the template has no subject"}
	}
	var wrong []*fanfare.Error
	compile := func(name, source string, mode liquid.Mode) *templatePart {
		p, err := liquid.CompilePart(name, source, nil, mode, nil, src.notify)
		if err != nil {
			err.Pointer = t.pointer(name)
			wrong = append(wrong, err)
		}
		return &templatePart{Part: p}
	}
	if !onlyJSON && !src.SMS {
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

// checkSMS refuses the parts that a text message cannot have.
func (src *Source) checkSMS(pointer func(string) string) *fanfare.Error {
	for _, part := range []struct{ name, text string }{{"subject", src.Subject}, {"html", src.HTML}, {"markdown", src.Markdown}} {
		if part.text != "" {
			err := invalid(0, "write the whole message in text, or change the type of the template to email", "a text message has no %s", part.name)
			err.Pointer = pointer(part.name)
			return err
		}
	}
	if len(src.Files) > 0 {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer("attachments"), Message: "a text message cannot have files", Hint: "remove the files, or link to them"}
	}
	return nil
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

// IsSMS reports whether the template is for text messages alone.
func (t *Template) IsSMS() bool { return t.subject == nil && t.text != nil }

// pointer returns the JSON pointer of a part in the document of the template.
func (t *Template) pointer(part string) string {
	return t.variantPointer(bodies.Pointer(t.Name, part))
}

// setPosition sets the pointer, line and column of an error about text in a part.
func (t *Template) setPosition(p *templatePart, err *fanfare.Error, text string) *fanfare.Error {
	err.Pointer = p.owner.pointer(p.Name)
	p.SetPosition(err, text)
	err.Pointer = p.owner.variantPointer(err.Pointer)
	return err
}

// setRenderedPosition is setPosition for an error that occurred while the part was rendered.
func (t *Template) setRenderedPosition(p *templatePart, err *fanfare.Error) *fanfare.Error {
	name, ok := strings.CutPrefix(err.Message, liquid.UndefinedPrefix)
	if !ok {
		name = ""
	}
	return t.setPosition(p, err, name)
}

// joinErrors returns the first error with the others as its details; nil without errors.
func joinErrors(wrong []*fanfare.Error) error {
	if len(wrong) == 0 {
		return nil
	}
	return withDetails(wrong)
}

func withDetails(wrong []*fanfare.Error) *fanfare.Error {
	// A wrong subject is also wrong as the title of the HTML.
	wrong = slices.CompactFunc(wrong, func(a, b *fanfare.Error) bool {
		return a.Pointer == b.Pointer && a.Line == b.Line && a.Column == b.Column && a.Message == b.Message
	})
	wrong[0].Details = append(wrong[0].Details, wrong[1:]...)
	return wrong[0]
}

// invalid returns an error with the code Invalid.
func invalid(line int, hint, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Line: line, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// findUncertain finds the variables that only a schema could confirm, and those whose origin
// the compiler does not know.
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

// missingVariables returns what a writer reports or refuses; nil if it does neither.
func (t *Template) missingVariables(tell func(variable string), refuse bool) *liquid.MissingVariables {
	if tell == nil && !refuse {
		return nil
	}
	return &liquid.MissingVariables{Uncertain: t.uncertain, Opaque: t.opaque, OnMissing: tell, Refuse: refuse}
}

// toLiquid converts a source in another syntax to Liquid, line by line.
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
	if src.SMS && src.Text != "" {
		if err := liquid.CheckSource(src.Text, liquid.MaxBodyBytes); err != nil {
			err.Pointer = pointer("text")
			return src, err
		}
		src.notify = &liquid.NotifyContent{SMS: notifytext.Parse(src.Text)}
		src.Text, src.JSON, src.Syntax = liquid.NotifyFields(src.Text)+liquid.NotifyOutput(liquid.NotifySMS), liquid.FromNotify(src.JSON), ""
		return src, nil
	}
	if src.Markdown != "" && src.HTML == "" {
		if err := liquid.CheckSource(src.Subject, liquid.MaxSubjectBytes); err != nil {
			err.Pointer = pointer("subject")
			return src, err
		}
		src.notify = &liquid.NotifyContent{Subject: notifytext.Parse(src.Subject), Body: notifytext.NewBody(notifytext.Parse(src.Markdown))}
		if strings.TrimSpace(src.Subject) != "" {
			src.Subject = liquid.NotifyFields(src.Subject) + liquid.NotifyOutput(liquid.NotifySubject)
		}
		if err := liquid.CheckSource(src.Markdown, liquid.MaxBodyBytes); err != nil {
			err.Pointer = pointer("markdown")
			return src, err
		}
		src.Markdown = liquid.NotifyFields(src.Markdown) + "\n"
		src.Text, src.JSON, src.Syntax = liquid.FromNotify(src.Text), liquid.FromNotify(src.JSON), ""
		return src, nil
	}
	for _, part := range []*string{&src.Subject, &src.Text, &src.HTML, &src.Markdown, &src.JSON} {
		*part = liquid.FromNotify(*part)
	}
	src.Syntax = ""
	return src, nil
}

// compileBodies compiles the text and the HTML of a source. A text that the author did not
// write is generated from the HTML.
func (t *Template) compileBodies(src Source) (text, html *templatePart, wrong []*fanfare.Error) {
	fail := func(name string, err *fanfare.Error) {
		if err.Pointer == "" {
			err.Pointer = t.pointer(name)
		}
		wrong = append(wrong, err)
	}
	take := func(name, source string, made *bodies.Part, m liquid.Mode) *templatePart {
		p, err := liquid.CompilePart(name, source, made, m, t.images, src.notify)
		if err != nil {
			fail(name, err)
			return nil
		}
		return &templatePart{Part: p}
	}
	if src.Markdown != "" && src.HTML != "" {
		fail("markdown", invalid(0, "remove one of them; the HTML is generated from the Markdown", "the template has both markdown and html"))
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
	if len(wrong) > 0 || src.AsIs || of.IsComplete() {
		return text, html, wrong
	}
	if src.notify != nil {
		of.Outputs = &bodies.Outputs{HTML: liquid.NotifyOutput(liquid.NotifyHTML), Text: liquid.NotifyOutput(liquid.NotifyPlain), Preheader: liquid.NotifyOutput(liquid.NotifyPreheader)}
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
		if strings.TrimSpace(made.Text.Source) == "" { // the HTML has no text, so it is sent alone
			return nil, html, nil
		}
		text = take("text", made.Text.Source, &made.Text, liquid.Plain)
	}
	return text, html, wrong
}

// A Fault is the place where a template failed for a recipient. It names the variables that the
// template reads there, never their values.
type Fault struct {
	Part      string   // path in the document of the template: text, locales/cy/html
	Line      int      // 0: the part as a whole
	Variables []string // that the line reads
}

// Fault returns where in the template an error of writing a message occurred; false if the
// template is not the cause, as for a wrong address.
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
		text += ", which uses " + strings.Join(f.Variables, ", ")
	}
	return text
}
