package bodies

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"
	eastasian "golang.org/x/text/width"
)

// maxColumns is the greatest width of a line that can be wrapped.
const maxColumns = 76

// valueWidth is the assumed width of a value.
const valueWidth = 12

// A textWriter converts HTML with placeholders to text.
type textWriter struct {
	b         *builder
	out       []byte
	words     []textWord // of the current paragraph
	space     bool       // white space follows the last word
	indent    []string   // before each line
	marker    string     // before the next line instead of the last indent: the marker of a list item
	hasMarker bool       // marker is set
	blank     bool       // the last line is empty, or there is none

	skip   int // depth inside an ignored element
	pre    bool
	lists  []openList
	loops  int // open loops of Liquid
	links  []openLink
	cells  []string // of the current row
	header []string // of the current table
	inHead bool
	tables []bool // the open tables: true for a data table
	// inHeading tells that tags belong to a heading, not between paragraphs.
	inHeading    bool
	headingLinks []string // addresses of the links in a heading, written below it
	afterTerm    bool     // words holds a term, whose description follows
}

type openList struct {
	ordered bool
	number  int
	loops   int
	loose   bool // an item has several paragraphs, so an empty line separates the items
}

type openLink struct {
	address string
	at      int // number of words before it
}

// blockElements begin and end a paragraph.
var blockElements = wordSet("address article aside blockquote body caption center dd div dl dt f-button f-column f-divider f-image f-section f-spacer fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html li main nav ol p pre section table tbody td tfoot th thead tr ul")

// spacedElements are followed by an empty line.
var spacedElements = wordSet("blockquote dl f-button f-image f-section figure h1 h2 h3 h4 h5 h6 ol p pre table ul")

// ignoredElements contain no text.
var ignoredElements = wordSet("head style script title template noscript")

func wordSet(names string) map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		all[name] = true
	}
	return all
}

// text converts HTML to text.
func (b *builder) text(source string) string {
	w := &textWriter{b: b, blank: true}
	z := html.NewTokenizer(strings.NewReader(source))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		t := z.Token()
		switch kind {
		case html.TextToken:
			w.addText(t.Data)
		case html.StartTagToken, html.SelfClosingTagToken:
			w.start(t, kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			w.end(t.Data)
		}
	}
	w.flush()
	if text := strings.TrimRight(string(w.out), " \n"); text != "" {
		return text + "\n"
	}
	return ""
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return strings.TrimSpace(a.Val)
		}
	}
	return ""
}

// hidden reports whether readers do not show an element, such as the preview line.
func hidden(t html.Token) bool {
	style := strings.ReplaceAll(attribute(t, "style"), " ", "")
	for _, a := range t.Attr {
		if a.Key == "hidden" {
			return true
		}
	}
	return strings.Contains(style, "display:none")
}

func (w *textWriter) start(t html.Token, closed bool) {
	name := t.Data
	closed = closed || voidElements[name]
	if w.skip > 0 {
		if !closed {
			w.skip++
		}
		return
	}
	if !closed && (ignoredElements[name] || hidden(t)) {
		w.skip = 1
		return
	}
	switch {
	case w.inDataRow() && (name == "td" || name == "th"):
	case w.afterTerm && name == "dd": // on the line of its term
		w.space = true
	case blockElements[name]:
		w.flush()
	}
	w.afterTerm = false
	switch name {
	case "br":
		w.lineBreak()
	case "hr", "f-divider":
		w.line(strings.Repeat("-", maxColumns-w.indented()))
		w.blankLine()
	case "img", "f-image":
		w.image(t)
		if name == "f-image" {
			w.flush()
			w.blankLine()
		}
	case "a", "f-button":
		w.links = append(w.links, openLink{attribute(t, "href"), len(w.words)})
	case "p":
		w.separateInItem()
	case "pre":
		w.separateInItem()
		w.pre = true
	case "blockquote":
		w.separateInItem()
		w.indent = append(w.indent, "> ")
	case "ul", "ol":
		if len(w.lists) == 0 {
			w.blankLineBeforeList()
		}
		n, err := strconv.Atoi(attribute(t, "start"))
		if err != nil {
			n = 1
		}
		w.lists = append(w.lists, openList{ordered: name == "ol", number: n, loops: w.loops})
	case "li":
		w.item()
	case "table":
		w.tables = append(w.tables, attribute(t, "role") != "presentation")
		if w.inDataRow() {
			w.header = nil
		}
	case "tr":
		w.cells, w.inHead = nil, false
	case "th":
		w.inHead = true
	case "h1", "h2", "h3", "h4", "h5", "h6":
		w.blankLine()
		w.inHeading = true
	}
}

func (w *textWriter) end(name string) {
	if w.skip > 0 {
		if !voidElements[name] {
			w.skip--
		}
		return
	}
	switch name {
	case "a", "f-button":
		w.link(name == "f-button")
	case "td", "th":
		if w.inDataRow() {
			w.cell()
			return
		}
	case "tr":
		if w.inDataRow() {
			w.row()
			return
		}
	case "dt":
		if n := len(w.words); n > 0 {
			w.words[n-1].text += ":"
			w.afterTerm = true
		}
		return
	case "h1":
		w.heading("=")
	case "h2":
		w.heading("-")
	case "h3", "h4", "h5", "h6":
		w.heading("~")
	}
	if blockElements[name] {
		w.flush()
	}
	switch name {
	case "pre":
		w.pre = false
	case "blockquote":
		w.trimIndent()
		w.removeQuotedBlankLine()
	case "li":
		if w.hasMarker { // the item is empty
			w.hasMarker = false
		}
		w.trimIndent()
	case "ul", "ol":
		w.lists = w.lists[:max(0, len(w.lists)-1)]
	case "table":
		w.tables = w.tables[:max(0, len(w.tables)-1)]
	}
	if spacedElements[name] && len(w.lists) == 0 {
		w.blankLine()
	}
}

// inDataRow reports whether the current table is a data table, whose cells are collected.
func (w *textWriter) inDataRow() bool { return len(w.tables) > 0 && w.tables[len(w.tables)-1] }

func (w *textWriter) trimIndent() { w.indent = w.indent[:max(0, len(w.indent)-1)] }

// separateInItem writes an empty line before a further paragraph of an item.
func (w *textWriter) separateInItem() {
	if n := len(w.lists); n > 0 && !w.hasMarker && !w.blank {
		w.lists[n-1].loose = true
		w.blankLine()
	}
}

// removeQuotedBlankLine removes the empty line at the end of a quotation.
func (w *textWriter) removeQuotedBlankLine() {
	if !w.blank || len(w.out) == 0 {
		return
	}
	start := bytes.LastIndexByte(w.out[:len(w.out)-1], '\n') + 1
	if line := string(w.out[start:]); strings.Contains(line, ">") && strings.Trim(line, "> \n") == "" {
		w.out, w.blank = w.out[:start], false
	}
}

// item begins an item of a list.
func (w *textWriter) item() {
	sign := "- "
	if n := len(w.lists); n > 0 && w.lists[n-1].loose {
		w.blankLine()
	}
	if n := len(w.lists); n > 0 && w.lists[n-1].ordered {
		l := &w.lists[n-1]
		if w.loops > l.loops {
			sign = w.b.add(placeholder{source: "{{ forloop.index }}"}) + ". "
		} else {
			sign = strconv.Itoa(l.number) + ". "
			l.number++
		}
	}
	w.marker, w.hasMarker = sign, true
	w.indent = append(w.indent, strings.Repeat(" ", min(w.b.width(sign), 4)))
}

// link writes the address after the text of a link.
func (w *textWriter) link(button bool) {
	if len(w.links) == 0 {
		return
	}
	l := w.links[len(w.links)-1]
	w.links = w.links[:len(w.links)-1]
	if l.address == "" || strings.HasPrefix(l.address, "#") {
		return
	}
	var said []string
	for _, part := range w.words[min(l.at, len(w.words)):] {
		said = append(said, part.text)
	}
	label := strings.Join(said, " ")
	switch {
	case label == l.address || "mailto:"+label == l.address || "tel:"+label == l.address || "http://"+label == l.address:
	case label == "":
		w.push(l.address, false)
	case button:
		w.words[len(w.words)-1].text += ":"
		w.lineBreak()
		w.push(l.address, false)
	case w.inHeading:
		w.headingLinks = append(w.headingLinks, strings.TrimPrefix(l.address, "mailto:"))
	default:
		w.push("<"+strings.TrimPrefix(l.address, "mailto:")+">", false)
	}
}

// cell ends a cell of a data table.
func (w *textWriter) cell() {
	w.cells = append(w.cells, w.joinWords())
	w.words, w.space = nil, false
}

// row writes a row of a data table: as one line, or with the header before each cell.
func (w *textWriter) row() {
	cells := w.cells
	w.cells = nil
	if w.inHead && len(w.header) == 0 && len(cells) > 1 {
		w.header = cells
		w.inHead = false
		return
	}
	w.inHead = false
	switch {
	case len(cells) == 0:
	case len(w.header) == len(cells):
		for i, c := range cells {
			w.line(w.header[i] + ": " + c)
		}
		w.blankLine()
	case len(cells) == 2:
		w.line(cells[0] + ": " + cells[1])
	default:
		w.line(strings.Join(cells, " | "))
	}
}

// Columns returns the number of columns of the longest line on a terminal: two for the wide
// characters of East Asia and for most emoji (Unicode Standard Annex 11), none for combining
// and invisible ones.
func Columns(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		n := 0
		for _, r := range line {
			n += runeColumns(r)
		}
		most = max(most, n)
	}
	return most
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc) {
		return 0
	}
	switch eastasian.LookupRune(r).Kind() {
	case eastasian.EastAsianWide, eastasian.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Underline returns a line of signs as wide as the text, and at most as wide as a line.
func Underline(text, sign string) string {
	return strings.Repeat(sign, min(Columns(text), maxColumns))
}

// heading writes the current words, a line of signs below them, and then the addresses of the
// links.
func (w *textWriter) heading(sign string) {
	w.inHeading = false
	most, taken := maxColumns-w.indented(), 0
	for i, part := range w.words {
		taken += part.width
		if i > 0 && !part.glued {
			taken++
		}
	}
	if taken == 0 {
		return
	}
	below := strings.Repeat(sign, min(taken, most))
	if exact, ok := w.b.underline(w.joinWords(), sign); ok && taken <= most && !slices.ContainsFunc(w.words, isBreak) {
		below = exact
	}
	w.flush()
	w.line(below)
	for _, address := range w.headingLinks {
		w.line(address)
	}
	w.headingLinks = nil
}

func isBreak(part textWord) bool { return part.text == lineBreakWord }

// underline returns the line below a heading of one line: signs below its text, each value with
// the filter underline, and the same conditions. It reports false if a tag must not run twice.
func (b *builder) underline(line, sign string) (string, bool) {
	var out strings.Builder
	from := 0
	for _, at := range b.pattern.FindAllStringIndex(line, -1) {
		out.WriteString(strings.Repeat(sign, Columns(line[from:at[0]])))
		from = at[1]
		m := *b.at(line[at[0]:at[1]])
		switch m.tag {
		case "":
			if m.source = withUnderline(m.source, sign); m.source == "" {
				return "", false
			}
		case "if", "unless", "case", "when", "elsif", "else", "endif", "endunless", "endcase", "for", "endfor", "comment":
		default:
			return "", false
		}
		out.WriteString(b.add(m))
	}
	out.WriteString(strings.Repeat(sign, Columns(line[from:])))
	return out.String(), true
}

// withUnderline adds the filter underline to an output; it returns "" for a tag.
func withUnderline(source, sign string) string {
	inner, ok := strings.CutSuffix(source, "}}")
	if !ok {
		return ""
	}
	trimmed := strings.TrimSuffix(inner, "-")
	return strings.TrimRight(trimmed, " \t\n") + ` | underline: "` + sign + `" ` + inner[len(trimmed):] + "}}"
}

// imageFinder notes the images of Markdown that have no alternative text. Their alt attribute
// in HTML is empty, as for an image that its author declared to be decoration.
type imageFinder struct{ b *builder }

func (p imageFinder) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function below returns no error
		if img, ok := n.(*ast.Image); ok && entering && !img.HasChildren() {
			p.b.withoutAlt[string(util.URLEscape(img.Destination, true))] = string(img.Title)
		}
		return ast.WalkContinue, nil
	})
}

// image writes the alternative text of an image. If the author wrote none, it writes the title
// or else the address, unless the address is useless in a text: an image in the mail, a
// tracking pixel, or the label of a link.
func (w *textWriter) image(t html.Token) {
	alt, src := attribute(t, "alt"), attribute(t, "src")
	title, missing := w.b.withoutAlt[src]
	switch {
	case alt != "":
		w.addText(alt)
	case !missing && hasAttribute(t, "alt"):
	case title != "" || attribute(t, "title") != "":
		w.addText(cmp.Or(title, attribute(t, "title")))
	case len(w.links) == 0 && w.b.isWebAddress(src) && !isPixel(t):
		w.push(src, false)
	}
}

func hasAttribute(t html.Token, name string) bool {
	for _, a := range t.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// isWebAddress reports whether a reader of the text can open the address. An address that
// begins with a value is taken for one.
func (b *builder) isWebAddress(address string) bool {
	lower := strings.ToLower(address)
	at := b.pattern.FindStringIndex(address)
	return strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "http://") || at != nil && at[0] == 0
}

func isPixel(t html.Token) bool {
	small := func(size string) bool { return size == "0" || size == "1" }
	return small(strings.TrimSuffix(attribute(t, "width"), "px")) || small(strings.TrimSuffix(attribute(t, "height"), "px"))
}
