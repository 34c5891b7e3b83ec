package bodies

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown makes HTML of Markdown whose Liquid was exchanged. It is CommonMark
// with the tables, strikethrough and bare links of GitHub, and three things of
// our own: tags that stand alone on their lines are between what is around them,
// lines that begin with ^ are an inset, and a link with the title "button" that
// stands alone is a button.
func (b *builder) markdown(source string) string {
	source = b.linkValues(source)
	source = b.separateConditions(source)
	source = b.tagsAsRows(source)
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
		goldmark.WithParserOptions(
			parser.WithBlockParsers(util.Prioritized(tagLineParser{b}, 150), util.Prioritized(insetParser{}, 750)),
			parser.WithASTTransformers(util.Prioritized(listJoiner{b}, 500), util.Prioritized(imageFinder{b}, 600)),
		),
		goldmark.WithRendererOptions(
			html.WithUnsafe(), // the author may write HTML as well; values are escaped where all are
			renderer.WithNodeRenderers(util.Prioritized(nodeRenderer{}, 500)),
		),
	)
	var out bytes.Buffer
	if err := md.Convert([]byte(source), &out); err != nil { // a buffer does not fail
		panic(err)
	}
	return asButtons(strings.NewReplacer("<table>", `<table class="data">`, "<th>", `<th scope="col">`, "<th style", `<th scope="col" style`).Replace(b.extractTagRows(out.String())))
}

// linkValues makes links of <{{ event.url }}>, which Markdown would not know
// for an address.
func (b *builder) linkValues(source string) string {
	return regexp.MustCompile(`<(`+b.key+`[a-p]+x)>`).ReplaceAllString(source, "[$1]($1)")
}

// separateConditions puts the tags of a condition that has a paragraph of one line to
// itself on lines of their own: where it does not hold, the paragraph is not there,
// and no empty one is left.
func (b *builder) separateConditions(source string) string {
	lines := strings.Split(source, "\n")
	blank := func(i int) bool { return i < 0 || i >= len(lines) || strings.TrimSpace(lines[i]) == "" }
	out := make([]string, 0, len(lines))
	for i, line := range lines {
		if blank(i) || !blank(i-1) || !blank(i+1) || strings.HasPrefix(line, "    ") {
			out = append(out, line)
			continue
		}
		out = append(out, b.splitCondition(line)...)
	}
	return strings.Join(out, "\n")
}

// splitCondition takes the tags of a line that is one condition as a whole from what stands
// between them; any other line it leaves alone.
func (b *builder) splitCondition(line string) []string {
	words := b.pattern.FindAllStringIndex(line, -1)
	if len(words) < 2 || strings.TrimSpace(line[:words[0][0]]) != "" || strings.TrimSpace(line[words[len(words)-1][1]:]) != "" {
		return []string{line}
	}
	var parts []string
	open, from := 0, words[0][0]
	for i, at := range words {
		m := b.at(line[at[0]:at[1]])
		switch {
		case m.opens():
			open++
		case m.closes():
			open--
		}
		first, last := i == 0, i == len(words)-1
		if first && m.tag != "if" && m.tag != "unless" || last != (open == 0) {
			return []string{line}
		}
		if first || last || open == 1 && (m.tag == "else" || m.tag == "elsif") {
			if between := strings.TrimSpace(line[from:at[0]]); between != "" {
				parts = append(parts, between)
			}
			parts = append(parts, line[at[0]:at[1]])
			from = at[1]
		}
	}
	return parts
}

// onlyTags returns the tags of a line that has nothing else, nil for any other.
func (b *builder) onlyTags(line string) []*placeholder {
	words := b.pattern.FindAllString(line, -1)
	if len(words) == 0 || strings.TrimSpace(b.pattern.ReplaceAllString(line, "")) != "" {
		return nil
	}
	tags := make([]*placeholder, len(words))
	for i, w := range words {
		if tags[i] = b.at(w); tags[i].tag == "" || tags[i].tag == "raw" {
			return nil
		}
	}
	return tags
}

// depth is how far tags leave the blocks of Liquid open, and how far they close
// such as were open before.
func depth(tags []*placeholder) (after, lowest int) {
	for _, t := range tags {
		switch {
		case t.opens():
			after++
		case t.closes():
			after--
			lowest = min(lowest, after)
		}
	}
	return after, lowest
}

var delimiterRow = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$`)

// tagsAsRows makes rows of the tags between the rows of a table, so that they
// do not end it; untable takes them out again. Tags that close or open what does
// not lie in the table end it.
func (b *builder) tagsAsRows(source string) string {
	lines := strings.Split(source, "\n")
	out := make([]string, 0, len(lines))
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		if i == 0 || !strings.Contains(lines[i], "|") || !delimiterRow.MatchString(lines[i]) || !strings.Contains(lines[i-1], "|") {
			continue
		}
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "" {
			end++
		}
		rows := lines[i+1 : end]
		for len(rows) > 0 {
			n := b.balancedRows(rows)
			if n == 0 {
				out = append(out, "")
				break
			}
			for _, row := range rows[:n] {
				if b.onlyTags(row) != nil {
					row = "| " + strings.TrimSpace(row) + " |"
				}
				out = append(out, row)
			}
			rows = rows[n:]
		}
		out = append(out, rows...)
		i = end - 1
	}
	return strings.Join(out, "\n")
}

// balancedRows counts the rows at the beginning up to where all is closed that they
// open: 1 for a row that is none of tags, 0 where they do not close.
func (b *builder) balancedRows(rows []string) int {
	open := 0
	for i, row := range rows {
		after, lowest := depth(b.onlyTags(row))
		if open+lowest < 0 {
			return 0
		}
		if open += after; open == 0 {
			return i + 1
		}
	}
	return 0
}

// extractTagRows takes the rows of tags out of the table.
func (b *builder) extractTagRows(text string) string {
	row := regexp.MustCompile(`<tr>\n<td[^>]*>((?:` + b.key + `[a-p]+x ?)+)</td>\n(?:<td[^>]*></td>\n)*</tr>`)
	return row.ReplaceAllStringFunc(text, func(found string) string {
		cell := row.FindStringSubmatch(found)[1]
		if b.onlyTags(cell) == nil {
			return found
		}
		return cell
	})
}

var buttonLink = regexp.MustCompile(`<p><a href="([^"]*)" title="button">(.*?)</a></p>`)

func asButtons(text string) string {
	return buttonLink.ReplaceAllString(text, `<f-button href="$1">$2</f-button>`)
}

// A tagLine is a line of Liquid tags.
type tagLine struct {
	ast.BaseBlock
	words string
	tags  []*placeholder
}

var kindTagLine = ast.NewNodeKind("TagLine")

func (n *tagLine) Kind() ast.NodeKind { return kindTagLine }

func (n *tagLine) Dump(source []byte, level int) {
	ast.DumpHelper(n, source, level, map[string]string{"words": n.words}, nil)
}

// tagLineParser reads them.
type tagLineParser struct{ b *builder }

func (p tagLineParser) Trigger() []byte { return []byte{p.b.key[0]} }

func (p tagLineParser) Open(_ ast.Node, reader text.Reader, _ parser.Context) (ast.Node, parser.State) {
	line, _ := reader.PeekLine()
	tags := p.b.onlyTags(string(line))
	if tags == nil {
		return nil, parser.NoChildren
	}
	reader.AdvanceToEOL()
	return &tagLine{words: strings.TrimSpace(string(line)), tags: tags}, parser.NoChildren
}

func (p tagLineParser) Continue(ast.Node, text.Reader, parser.Context) parser.State {
	return parser.Close
}
func (p tagLineParser) Close(ast.Node, text.Reader, parser.Context) {}
func (p tagLineParser) CanInterruptParagraph() bool                 { return true }
func (p tagLineParser) CanAcceptIndentedLine() bool                 { return false }

// An inset is what stands behind ^, as in the Markdown of GOV.UK Notify.
type inset struct{ ast.BaseBlock }

var kindInset = ast.NewNodeKind("Inset")

func (n *inset) Kind() ast.NodeKind { return kindInset }

func (n *inset) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// insetParser reads them, as quotations are read.
type insetParser struct{}

func (insetParser) Trigger() []byte { return []byte{'^'} }

func (insetParser) take(reader text.Reader) bool {
	line, _ := reader.PeekLine()
	width, at := util.IndentWidth(line, reader.LineOffset())
	if width > 3 || at >= len(line) || line[at] != '^' {
		return false
	}
	at++
	if at < len(line) && line[at] == ' ' {
		at++
	}
	reader.Advance(at)
	return true
}

func (p insetParser) Open(_ ast.Node, reader text.Reader, _ parser.Context) (ast.Node, parser.State) {
	if !p.take(reader) {
		return nil, parser.NoChildren
	}
	return &inset{}, parser.HasChildren
}

func (p insetParser) Continue(_ ast.Node, reader text.Reader, _ parser.Context) parser.State {
	if !p.take(reader) {
		return parser.Close
	}
	return parser.Continue | parser.HasChildren
}

func (insetParser) Close(ast.Node, text.Reader, parser.Context) {}
func (insetParser) CanInterruptParagraph() bool                 { return true }
func (insetParser) CanAcceptIndentedLine() bool                 { return false }

// nodeRenderer writes both.
type nodeRenderer struct{}

func (nodeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(kindTagLine, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString(n.(*tagLine).words + "\n") // of a buffer, as below
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(kindInset, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString("<div class=\"inset\">\n")
		} else {
			_, _ = w.WriteString("</div>\n")
		}
		return ast.WalkContinue, nil
	})
}

// listJoiner joins what Markdown reads as several lists, because tags stand between
// their items: a loop makes items and not lists.
type listJoiner struct{ b *builder }

func (l listJoiner) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	l.join(doc)
}

func (l listJoiner) join(parent ast.Node) {
	for child := parent.FirstChild(); child != nil; child = child.NextSibling() {
		if first, last := l.run(child); first != nil {
			child = l.into(parent, first, child, last)
		}
		if child.HasChildren() && child.Type() == ast.TypeBlock {
			l.join(child)
		}
	}
}

// run finds the nodes from start to last that make one list, and the first list
// of them; nil where there is nothing to join.
func (l listJoiner) run(start ast.Node) (first *ast.List, last ast.Node) {
	open, tagged, worth := 0, false, false
	var list *ast.List
	for n := start; n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *tagLine:
			after, lowest := depth(n.tags)
			if open+lowest < 0 {
				return first, last
			}
			open += after
			tagged = true
			for _, t := range n.tags {
				worth = worth || t.tag == "for"
			}
		case *ast.List:
			if list == nil {
				list = n
			} else if list.Marker != n.Marker {
				return first, last
			}
			worth = worth || open == 0
		default:
			return first, last
		}
		if open == 0 && tagged && worth && list != nil {
			first, last = list, n
		}
	}
	return first, last
}

// into makes one list of the items and tags from start to last, which takes their
// place and is like the given one.
func (l listJoiner) into(parent ast.Node, like *ast.List, start, last ast.Node) ast.Node {
	list := ast.NewList(like.Marker)
	list.Start, list.IsTight = like.Start, like.IsTight
	parent.InsertBefore(parent, start, list)
	var parts []ast.Node
	for n, done := start, false; !done; {
		next := n.NextSibling()
		done = n == last
		if other, ok := n.(*ast.List); ok {
			list.IsTight = list.IsTight && other.IsTight
			for item := other.FirstChild(); item != nil; item = item.NextSibling() {
				parts = append(parts, item)
			}
			parent.RemoveChild(parent, other)
		} else {
			parts = append(parts, n)
		}
		n = next
	}
	for _, part := range parts {
		list.AppendChild(list, part)
	}
	return list
}
