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
	source = b.wholeAddresses(source)
	source = b.conditionsApart(source)
	source = b.tagsInTables(source)
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
		goldmark.WithParserOptions(
			parser.WithBlockParsers(util.Prioritized(tagLines{b}, 150), util.Prioritized(insets{}, 750)),
			parser.WithASTTransformers(util.Prioritized(lists{b}, 500), util.Prioritized(images{b}, 600)),
		),
		goldmark.WithRendererOptions(
			html.WithUnsafe(), // the author may write HTML as well; values are escaped where all are
			renderer.WithNodeRenderers(util.Prioritized(ownNodes{}, 500)),
		),
	)
	var out bytes.Buffer
	if err := md.Convert([]byte(source), &out); err != nil { // a buffer does not fail
		panic(err)
	}
	return asButtons(strings.NewReplacer("<table>", `<table class="data">`, "<th>", `<th scope="col">`, "<th style", `<th scope="col" style`).Replace(b.untable(out.String())))
}

// wholeAddresses makes links of <{{ event.url }}>, which Markdown would not know
// for an address.
func (b *builder) wholeAddresses(source string) string {
	return regexp.MustCompile(`<(`+b.key+`[a-p]+x)>`).ReplaceAllString(source, "[$1]($1)")
}

// conditionsApart puts the tags of a condition that has a paragraph of one line to
// itself on lines of their own: where it does not hold, the paragraph is not there,
// and no empty one is left.
func (b *builder) conditionsApart(source string) string {
	lines := strings.Split(source, "\n")
	blank := func(i int) bool { return i < 0 || i >= len(lines) || strings.TrimSpace(lines[i]) == "" }
	out := make([]string, 0, len(lines))
	for i, line := range lines {
		if blank(i) || !blank(i-1) || !blank(i+1) || strings.HasPrefix(line, "    ") {
			out = append(out, line)
			continue
		}
		out = append(out, b.condition(line)...)
	}
	return strings.Join(out, "\n")
}

// condition takes the tags of a line that is one condition as a whole from what stands
// between them; any other line it leaves alone.
func (b *builder) condition(line string) []string {
	words := b.word.FindAllStringIndex(line, -1)
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
func (b *builder) onlyTags(line string) []*mark {
	words := b.word.FindAllString(line, -1)
	if len(words) == 0 || strings.TrimSpace(b.word.ReplaceAllString(line, "")) != "" {
		return nil
	}
	tags := make([]*mark, len(words))
	for i, w := range words {
		if tags[i] = b.at(w); tags[i].tag == "" || tags[i].tag == "raw" {
			return nil
		}
	}
	return tags
}

// depth is how far tags leave the blocks of Liquid open, and how far they close
// such as were open before.
func depth(tags []*mark) (after, lowest int) {
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

// tagsInTables makes rows of the tags between the rows of a table, so that they
// do not end it; untable takes them out again. Tags that close or open what does
// not lie in the table end it.
func (b *builder) tagsInTables(source string) string {
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
			n := b.balanced(rows)
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

// balanced counts the rows at the beginning up to where all is closed that they
// open: 1 for a row that is none of tags, 0 where they do not close.
func (b *builder) balanced(rows []string) int {
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

// untable takes the rows of tags out of the table.
func (b *builder) untable(text string) string {
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
	tags  []*mark
}

var kindTagLine = ast.NewNodeKind("TagLine")

func (n *tagLine) Kind() ast.NodeKind { return kindTagLine }

func (n *tagLine) Dump(source []byte, level int) {
	ast.DumpHelper(n, source, level, map[string]string{"words": n.words}, nil)
}

// tagLines reads them.
type tagLines struct{ b *builder }

func (p tagLines) Trigger() []byte { return []byte{p.b.key[0]} }

func (p tagLines) Open(_ ast.Node, reader text.Reader, _ parser.Context) (ast.Node, parser.State) {
	line, _ := reader.PeekLine()
	tags := p.b.onlyTags(string(line))
	if tags == nil {
		return nil, parser.NoChildren
	}
	reader.AdvanceToEOL()
	return &tagLine{words: strings.TrimSpace(string(line)), tags: tags}, parser.NoChildren
}

func (p tagLines) Continue(ast.Node, text.Reader, parser.Context) parser.State { return parser.Close }
func (p tagLines) Close(ast.Node, text.Reader, parser.Context)                 {}
func (p tagLines) CanInterruptParagraph() bool                                 { return true }
func (p tagLines) CanAcceptIndentedLine() bool                                 { return false }

// An inset is what stands behind ^, as in the Markdown of GOV.UK Notify.
type inset struct{ ast.BaseBlock }

var kindInset = ast.NewNodeKind("Inset")

func (n *inset) Kind() ast.NodeKind { return kindInset }

func (n *inset) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// insets reads them, as quotations are read.
type insets struct{}

func (insets) Trigger() []byte { return []byte{'^'} }

func (insets) take(reader text.Reader) bool {
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

func (p insets) Open(_ ast.Node, reader text.Reader, _ parser.Context) (ast.Node, parser.State) {
	if !p.take(reader) {
		return nil, parser.NoChildren
	}
	return &inset{}, parser.HasChildren
}

func (p insets) Continue(_ ast.Node, reader text.Reader, _ parser.Context) parser.State {
	if !p.take(reader) {
		return parser.Close
	}
	return parser.Continue | parser.HasChildren
}

func (insets) Close(ast.Node, text.Reader, parser.Context) {}
func (insets) CanInterruptParagraph() bool                 { return true }
func (insets) CanAcceptIndentedLine() bool                 { return false }

// ownNodes writes both.
type ownNodes struct{}

func (ownNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
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

// lists joins what Markdown reads as several lists, because tags stand between
// their items: a loop makes items and not lists.
type lists struct{ b *builder }

func (l lists) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	l.join(doc)
}

func (l lists) join(parent ast.Node) {
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
func (l lists) run(start ast.Node) (first *ast.List, last ast.Node) {
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
func (l lists) into(parent ast.Node, like *ast.List, start, last ast.Node) ast.Node {
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
