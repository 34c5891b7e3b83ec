package render

import (
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/bodies"
)

// maxMadeBytes bounds what is made of a body, with its layout and its styles.
const maxMadeBytes = 4 * MaxBodyBytes

// compose compiles the text and the HTML of a source. Text that its author did
// not write is made from the HTML.
func (t *Template) compose(src Source) (text, html *part, wrong []*fanfare.Error) {
	fail := func(name string, err *fanfare.Error) {
		if err.Pointer == "" {
			err.Pointer = t.pointer(name)
		}
		wrong = append(wrong, err)
	}
	take := func(name, source string, made *bodies.Part, m mode) *part {
		p, err := compilePart(name, source, made, m, t.images)
		if err != nil {
			fail(name, err)
		}
		return p
	}
	if src.Markdown != "" && src.HTML != "" {
		fail("markdown", invalid(0, "the HTML is made of the Markdown", "the template has both markdown and html"))
		return nil, nil, wrong
	}
	if src.Text != "" && len(bodies.Renders(src.Text)) == 0 {
		text = take("text", src.Text, nil, plain)
	}
	if src.HTML != "" && len(bodies.Renders(src.HTML)) == 0 {
		html = take("html", src.HTML, nil, markup)
	}
	if err := checkSource(src.Markdown, MaxBodyBytes); err != nil {
		fail("markdown", err)
	}
	of := bodies.Source{Name: t.Name, Within: t.within, Subject: src.Subject, Markdown: src.Markdown, HTML: src.HTML, Text: src.Text, Layout: src.Layout, Lang: src.Lang, Page: src.Page, Partials: src.Partials}
	if len(wrong) > 0 || of.Finished() {
		return text, html, wrong
	}
	made, faults := bodies.Make(of)
	if len(faults) > 0 {
		return nil, nil, faults
	}
	if made.HTML.Source != src.HTML {
		if html = take("html", made.HTML.Source, &made.HTML, markup); html != nil {
			html.findLost(src, t.pointer)
		}
	}
	if text == nil && len(wrong) == 0 {
		if strings.TrimSpace(made.Text.Source) == "" { // nothing in it is text: HTML alone leaves
			return nil, html, nil
		}
		text = take("text", made.Text.Source, &made.Text, plain)
	}
	return text, html, wrong
}

// point says where in what its author wrote an error of the part is, whose line
// is known: the column is that of text. A part that was made of something else
// knows its pointer.
func (p *part) point(err *fanfare.Error, text string) {
	source := p.source
	if p.made != nil {
		file, line := p.made.Origin(err.Line)
		for n := err.Line; file == nil && n > 0; n-- {
			file, line = p.made.Origin(n)
		}
		err.Line = line
		if file == nil {
			return
		}
		err.Pointer, source = file.Pointer(), file.Text
	}
	if err.Line > 0 {
		locate(source, err, text)
	}
}
