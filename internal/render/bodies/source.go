package bodies

import (
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// A Source is what an author wrote of one message. Of Markdown and HTML at most
// one is set.
type Source struct {
	Name     string // of the template
	Within   string // where in the template this stands, such as locales/cy/, or ""
	Subject  string
	Markdown string
	HTML     string
	Text     string // "": it is made from the HTML
	Layout   string // one that is built in, or ""
	Page     string // a layout of the author's own: HTML with {{ content }}
	Lang     string // BCP 47, or an output of Liquid that tells it; "" is English

	Partials map[string]string // what {% render "name" %} puts in
}

// Finished reports whether there is nothing to make: the parts are whole as they
// are written.
func (s *Source) Finished() bool {
	html := strings.ToLower(s.HTML)
	if renderTag.MatchString(s.HTML + s.Text) {
		return false
	}
	return s.speakable() && s.Page == "" && s.Markdown == "" && s.Layout == "" && (s.HTML == "" || s.Text != "" && !strings.Contains(html, "<style") && !strings.Contains(html, "<f-"))
}

// Made is the source as the writer of messages takes it.
type Made struct{ Text, HTML Part }

// A Part is Liquid, and where its lines come from.
type Part struct {
	Source string
	lines  []place // by line
}

// A File is one text that an author wrote.
type File struct {
	Template string
	Part     string // subject, text, html, markdown, page, subject, or partials/NAME
	Text     string
}

// file is a text of the source.
func (s *Source) file(part, text string) *File { return &File{s.Name, s.Within + part, text} }

// Pointer names the file as its author finds it in the document.
func (f *File) Pointer() string { return Pointer(f.Template, f.Part) }

// Pointer names a part of a template, or without one the template.
func Pointer(template, part string) string {
	name := "/templates/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(template)
	if part == "" {
		return name
	}
	return name + "/" + part
}

// A place is a line of a file.
type place struct {
	file *File
	line int
}

// Origin returns the file and the line from which a line of the part was made:
// nil where nothing of it is Liquid.
func (p Part) Origin(line int) (*File, int) {
	if line < 1 || line > len(p.lines) {
		return nil, 0
	}
	at := p.lines[line-1]
	return at.file, at.line
}

// fault is an error at an offset of a file.
func (f *File) fault(offset int, hint, message string) *fanfare.Error {
	before := f.Text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: f.Pointer(), Message: message, Hint: hint,
		Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(before[start:]) + 1}
}

// Make makes the parts, or says all that is wrong.
func Make(src Source) (Made, []*fanfare.Error) {
	b := newBuilder(src)
	made := b.make(src)
	return made, b.wrong
}
