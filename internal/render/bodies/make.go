package bodies

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// A Source is what an author wrote of one message. Of Markdown and HTML at most
// one is set.
type Source struct {
	Name         string // of the template
	PathPrefix   string // where in the template this stands, such as locales/cy/, or ""
	Subject      string
	Markdown     string
	HTML         string
	Text         string // "": it is made from the HTML
	Layout       string // one that is built in, or ""
	CustomLayout string // a layout of the author's own: HTML with {{ content }}
	Lang         string // BCP 47, or an output of Liquid that tells it; "" is English

	Partials map[string]string // what {% render "name" %} puts in
}

// IsComplete reports whether there is nothing to make: the parts are whole as they
// are written.
func (s *Source) IsComplete() bool {
	html := strings.ToLower(s.HTML)
	if renderTag.MatchString(s.HTML + s.Text) {
		return false
	}
	return s.hasValidLang() && s.CustomLayout == "" && s.Markdown == "" && s.Layout == "" && (s.HTML == "" || s.Text != "" && !strings.Contains(html, "<style") && !strings.Contains(html, "<f-"))
}

// Made is the source as the writer of messages takes it.
type Made struct{ Text, HTML Part }

// A Part is Liquid, and where its lines come from.
type Part struct {
	Source string
	lines  []origin // by line
}

// A File is one text that an author wrote.
type File struct {
	Template string
	Part     string // subject, text, html, markdown, page, subject, or partials/NAME
	Text     string
}

// file is a text of the source.
func (s *Source) file(part, text string) *File { return &File{s.Name, s.PathPrefix + part, text} }

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
type origin struct {
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
	return made, b.errors
}

// voidElements are the elements that have no end.
var voidElements = wordSet("area base br col embed hr img input link meta source track wbr f-divider f-image f-spacer")

// make makes the parts of the template itself.
func (b *builder) make(src Source) Made {
	file := src.file("html", src.HTML)
	if src.Markdown != "" {
		file = src.file("markdown", src.Markdown)
	}
	content := b.replaceLiquid(file)
	if src.Layout != "" && src.CustomLayout == "" && !slices.Contains(Layouts[:], src.Layout) {
		b.fail(&fanfare.Error{Code: fanfare.Invalid, Pointer: Pointer(src.Name, "layout"), Message: "there is no layout " + strconv.Quote(src.Layout),
			Hint: "built in are " + strings.Join(Layouts[:], " and ")})
	}
	if !src.hasValidLang() {
		b.fail(&fanfare.Error{Code: fanfare.Invalid, Pointer: Pointer(src.Name, "lang"), Message: strconv.Quote(src.Lang) + " is not a language", Hint: "write a tag such as cy or pt-BR, or an output such as {{ event.locale }}"})
	}
	var made Made
	if renderTag.MatchString(src.Text) {
		made.Text = b.restoreLiquid(b.replaceLiquid(src.file("text", src.Text)), func(m *placeholder) string { return m.source })
	}
	if len(b.errors) > 0 || content == "" {
		return made
	}
	if src.Markdown != "" {
		content = b.markdown(content)
	}
	switch {
	case src.Text != "":
	case src.CustomLayout != "":
		made.Text = b.restoreLiquid(b.text(b.inCustomLayout(src, content)), (*placeholder).textLiquid)
	default:
		made.Text = b.restoreLiquid(b.withFooter(src, b.text(content)), (*placeholder).textLiquid)
	}
	style := ""
	if strings.Contains(content, "<f-") {
		style = blockStyle
	}
	content = b.expandBlocks(file, content)
	switch {
	case src.CustomLayout != "":
		content = b.inCustomLayout(src, content)
	case src.Layout != "":
		content = b.inBuiltinLayout(src, content)
	}
	made.HTML = b.restoreLiquid(b.inlineStyles(content, style), func(m *placeholder) string { return m.source })
	return made
}

// withFooter puts below the text what the layout has below its content.
func (b *builder) withFooter(src Source, text string) string {
	if src.Layout != "plain" || src.CustomLayout != "" {
		return text
	}
	return text + "\n-- \n" + b.replaceGenerated(byLanguage(src.Lang, slices.Sorted(maps.Keys(unsubscribeLabels)), unsubscribeLabel)) + ": " + b.replaceGenerated("{{ unsubscribe_url }}") + "\n"
}

// textLiquid is the Liquid as it stands in a text that was made from HTML: without
// filters that make or escape HTML, and without the trimming of white space,
// which has none left to trim.
func (m *placeholder) textLiquid() string {
	source := m.source
	if m.tag == "raw" {
		return source
	}
	source = strings.Replace(source, "{{-", "{{", 1)
	source = strings.Replace(source, "{%-", "{%", 1)
	source = strings.TrimSuffix(strings.TrimSuffix(source, "-}}"), "-%}")
	switch {
	case source != "" && m.tag == "" && !strings.HasSuffix(source, "}}"):
		source += "}}"
	case source != "" && m.tag != "" && !strings.HasSuffix(source, "%}"):
		source += "%}"
	}
	if m.tag != "" && m.tag != "assign" {
		return source
	}
	return withoutMarkup(source)
}

var (
	toMarkup = regexp.MustCompile(`\|\s*(escape_once|escape|newline_to_br)\s*(\||[-]?[}%]\})`)
	asMarkup = regexp.MustCompile(`\|\s*(raw|safe)\s*(\||[-]?[}%]\})`)
)

// withoutMarkup takes the filters that write HTML out of an output, and strips
// the markup of a value that brings its own.
func withoutMarkup(source string) string {
	for toMarkup.MatchString(source) {
		source = toMarkup.ReplaceAllString(source, "$2")
	}
	return asMarkup.ReplaceAllString(source, "| strip_html $2")
}
