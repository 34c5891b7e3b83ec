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

// A Source is the body of one message as its author wrote it. At most one of Markdown and HTML
// is set.
type Source struct {
	Name         string // of the template
	PathPrefix   string // path of a variant in the template, such as locales/cy/, or ""
	Subject      string
	Markdown     string
	HTML         string
	Text         string // "": generated from the HTML
	Layout       string // a built-in layout, or ""
	CustomLayout string // a layout of the author's own: HTML with {{ content }}
	Lang         string // BCP 47, or an output of Liquid; "" is English

	Partials map[string]string // inserted by {% render "name" %}

	Outputs *Outputs // instead of the Markdown, which then has only Liquid that outputs nothing
}

// Outputs are the outputs of Liquid that have the contents of a message.
type Outputs struct{ HTML, Text, Preheader string }

// IsComplete reports whether nothing has to be generated.
func (s *Source) IsComplete() bool {
	html := strings.ToLower(s.HTML)
	if renderTag.MatchString(s.HTML + s.Text) {
		return false
	}
	return s.hasValidLang() && s.CustomLayout == "" && s.Markdown == "" && s.Layout == "" && (s.HTML == "" || s.Text != "" && !strings.Contains(html, "<style") && !strings.Contains(html, "<f-"))
}

// Made is the generated parts; a part that was complete is empty.
type Made struct{ Text, HTML Part }

// A Part is Liquid with the origin of its lines.
type Part struct {
	Source string
	lines  []origin // by line
}

// A File is one text that the author wrote.
type File struct {
	Template string
	Part     string // subject, text, html, markdown, page, lang, or partials/NAME
	Text     string
}

// file returns a text of the source.
func (s *Source) file(part, text string) *File { return &File{s.Name, s.PathPrefix + part, text} }

// Pointer returns the JSON pointer of the file in the document.
func (f *File) Pointer() string { return Pointer(f.Template, f.Part) }

// Pointer returns the JSON pointer of a part of a template; without a part, of the template.
func Pointer(template, part string) string {
	name := "/templates/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(template)
	if part == "" {
		return name
	}
	return name + "/" + part
}

// An origin is a line of a file.
type origin struct {
	file *File
	line int
}

// Origin returns the file and the line that a line of the part was generated from; nil if the
// line has no Liquid.
func (p Part) Origin(line int) (*File, int) {
	if line < 1 || line > len(p.lines) {
		return nil, 0
	}
	at := p.lines[line-1]
	return at.file, at.line
}

// fault returns an error at an offset of the file.
func (f *File) fault(offset int, hint, message string) *fanfare.Error {
	before := f.Text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: f.Pointer(), Message: message, Hint: hint,
		Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(before[start:]) + 1}
}

// Make generates the parts, or returns all errors.
func Make(src Source) (Made, []*fanfare.Error) {
	b := newBuilder(src)
	made := b.make(src)
	return made, b.errors
}

// voidElements have no end tag.
var voidElements = wordSet("area base br col embed hr img input link meta source track wbr f-divider f-image f-spacer")

// make generates the parts of the template.
func (b *builder) make(src Source) Made {
	file := src.file("html", src.HTML)
	if src.Markdown != "" {
		file = src.file("markdown", src.Markdown)
	}
	content := b.replaceLiquid(file)
	if src.Layout != "" && src.CustomLayout == "" && !slices.Contains(Layouts[:], src.Layout) {
		b.fail(&fanfare.Error{Code: fanfare.Invalid, Pointer: Pointer(src.Name, "layout"), Message: "unknown layout " + strconv.Quote(src.Layout),
			Hint: "the built-in layouts are " + strings.Join(Layouts[:], " and ")})
	}
	if !src.hasValidLang() {
		b.fail(&fanfare.Error{Code: fanfare.Invalid, Pointer: Pointer(src.Name, "lang"), Message: strconv.Quote(src.Lang) + " is not a language tag", Hint: "write a tag such as cy or pt-BR, or an output such as {{ event.locale }}"})
	}
	var made Made
	if renderTag.MatchString(src.Text) {
		made.Text = b.restoreLiquid(b.replaceLiquid(src.file("text", src.Text)), func(m *placeholder) string { return m.source })
	}
	if len(b.errors) > 0 || content == "" {
		return made
	}
	text := ""
	switch {
	case src.Outputs != nil:
		fields := strings.ReplaceAll(content, "\n", "")
		content = fields + `<div class="notify">` + "\n" + b.replaceGenerated(src.Outputs.HTML) + "</div>"
		text = fields + b.replaceGenerated(src.Outputs.Text)
	case src.Markdown != "":
		content = b.markdown(content)
	}
	switch {
	case src.Text != "":
	case src.Outputs != nil:
		made.Text = b.restoreLiquid(b.withFooter(src, text), (*placeholder).textLiquid)
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
		if src.Outputs != nil {
			content = notifyStyle + content
		}
		content = b.inBuiltinLayout(src, content, layoutPage)
	case src.Outputs != nil:
		content = b.inBuiltinLayout(src, content, notifyPage)
	}
	made.HTML = b.restoreLiquid(b.inlineStyles(content, style), func(m *placeholder) string { return m.source })
	return made
}

// withFooter appends the footer of the layout to the text.
func (b *builder) withFooter(src Source, text string) string {
	if src.Layout != "plain" || src.CustomLayout != "" {
		return text
	}
	return text + "\n-- \n" + b.replaceGenerated(byLanguage(src.Lang, slices.Sorted(maps.Keys(unsubscribeLabels)), unsubscribeLabel)) + ": " + b.replaceGenerated("{{ unsubscribe_url }}") + "\n"
}

// textLiquid returns the Liquid for a text that is generated from HTML: without filters that
// produce or escape HTML, and without the trimming of white space, which is already gone.
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

// withoutMarkup removes the filters that produce HTML from an output, and strips the markup of
// a value that is HTML.
func withoutMarkup(source string) string {
	for toMarkup.MatchString(source) {
		source = toMarkup.ReplaceAllString(source, "$2")
	}
	return asMarkup.ReplaceAllString(source, "| strip_html $2")
}
