package format

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// Limits of a template, in bytes.
const (
	MaxSubjectBytes = 1 << 10   // of the subject's source
	MaxBodyBytes    = 512 << 10 // of the text's and of the HTML's source, each
	maxRenderBytes  = 4 << 20   // of one rendered part
)

// Source is a template as its author wrote it. Text or HTML, or both, are
// required.
type Source struct {
	Name    string
	Version int
	Subject string
	Text    string
	HTML    string
}

// A Template is a compiled Source, safe for concurrent use.
type Template struct {
	Name    string
	Version int

	subject, text, html *part // text or html may be nil
}

// Compile checks the source and makes it ready. The error is a *fanfare.Error
// with the pointer /templates/NAME/PART and the line; where several parts are
// wrong, the others are in its Details.
func Compile(src Source) (*Template, error) {
	t := &Template{Name: src.Name, Version: src.Version}
	if src.Text == "" && src.HTML == "" {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: t.pointer(""), Message: "the template has neither text nor html"}
	}
	if strings.TrimSpace(src.Subject) == "" {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: t.pointer("subject"), Message: "the template has no subject"}
	}
	var wrong []*fanfare.Error
	compile := func(name, source string, limit int, mode mode) *part {
		p, err := compilePart(name, source, limit, mode)
		if err != nil {
			err.Pointer = t.pointer(name)
			wrong = append(wrong, err)
		}
		return p
	}
	t.subject = compile("subject", src.Subject, MaxSubjectBytes, plain)
	if src.Text != "" {
		t.text = compile("text", src.Text, MaxBodyBytes, plain)
	}
	if src.HTML != "" {
		t.html = compile("html", src.HTML, MaxBodyBytes, markup)
	}
	if err := gather(wrong); err != nil {
		return nil, err
	}
	return t, nil
}

// parts lists the parts that the template has.
func (t *Template) parts() []*part {
	all := make([]*part, 0, 3)
	for _, p := range []*part{t.subject, t.text, t.html} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// pointer names a part of the template as its author finds it in the document.
func (t *Template) pointer(part string) string {
	name := strings.NewReplacer("~", "~0", "/", "~1").Replace(t.Name)
	if part == "" {
		return "/templates/" + name
	}
	return "/templates/" + name + "/" + part
}

// at says where in the template an error of a rendered part is.
func (t *Template) at(p *part, err *fanfare.Error) *fanfare.Error {
	err.Pointer = t.pointer(p.name)
	if name, ok := strings.CutPrefix(err.Message, undefined); ok && err.Line > 0 {
		locate(p.source, err, name)
	}
	return err
}

// gather makes one error of many: the first, with the others as its details.
func gather(wrong []*fanfare.Error) error {
	if len(wrong) == 0 {
		return nil
	}
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
