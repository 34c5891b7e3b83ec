package bodies

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// void are the elements that have no end.
var void = set("area base br col embed hr img input link meta source track wbr f-divider f-image f-spacer")

// make makes the parts of the template itself.
func (b *builder) make(src Source) Made {
	file := src.file("html", src.HTML)
	if src.Markdown != "" {
		file = src.file("markdown", src.Markdown)
	}
	content := b.exchange(file)
	if src.Layout != "" && src.Page == "" && !slices.Contains(Layouts[:], src.Layout) {
		b.fail(&fanfare.Error{Code: fanfare.Invalid, Pointer: Pointer(src.Name, "layout"), Message: "there is no layout " + strconv.Quote(src.Layout),
			Hint: "built in are " + strings.Join(Layouts[:], " and ")})
	}
	if !src.speakable() {
		b.fail(&fanfare.Error{Code: fanfare.Invalid, Pointer: Pointer(src.Name, "lang"), Message: strconv.Quote(src.Lang) + " is not a language", Hint: "write a tag such as cy or pt-BR, or an output such as {{ event.locale }}"})
	}
	var made Made
	if renderTag.MatchString(src.Text) {
		made.Text = b.restore(b.exchange(src.file("text", src.Text)), func(m *mark) string { return m.source })
	}
	if len(b.wrong) > 0 || content == "" {
		return made
	}
	if src.Markdown != "" {
		content = b.markdown(content)
	}
	switch {
	case src.Text != "":
	case src.Page != "":
		made.Text = b.restore(b.text(b.onPage(src, content)), (*mark).inText)
	default:
		made.Text = b.restore(b.withFoot(src, b.text(content)), (*mark).inText)
	}
	style := ""
	if strings.Contains(content, "<f-") {
		style = blockStyle
	}
	content = b.blocks(file, content)
	switch {
	case src.Page != "":
		content = b.onPage(src, content)
	case src.Layout != "":
		content = b.inLayout(src, content)
	}
	made.HTML = b.restore(b.inline(content, style), func(m *mark) string { return m.source })
	return made
}

// withFoot puts below the text what the layout has below its content.
func (b *builder) withFoot(src Source, text string) string {
	if src.Layout != "plain" || src.Page != "" {
		return text
	}
	return text + "\n-- \n" + b.generated(byLanguage(src.Lang, slices.Sorted(maps.Keys(leave)), words)) + ": " + b.generated("{{ unsubscribe_url }}") + "\n"
}

// inText is the Liquid as it stands in a text that was made from HTML: without
// filters that make or escape HTML, and without the trimming of white space,
// which has none left to trim.
func (m *mark) inText() string {
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
