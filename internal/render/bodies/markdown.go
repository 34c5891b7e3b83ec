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

	"fanfare.dev/fanfare/internal/render/notifytext"
)

// markdown converts Markdown with placeholders to HTML. It is CommonMark with the tables,
// strikethrough and bare links of GitHub, and three extensions: a line of Liquid tags separates
// blocks, lines that begin with ^ are an inset, and a paragraph that is a link with the title
// "button" is a button.
func (b *builder) markdown(source string) string {
	source = b.linkValues(source)
	source = b.separateConditions(source)
	source = b.tagsAsRows(source)
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
		goldmark.WithParserOptions(
			parser.WithBlockParsers(util.Prioritized(tagLineParser{b}, 150), util.Prioritized(notifytext.InsetParser{}, 750)),
			parser.WithASTTransformers(util.Prioritized(listJoiner{b}, 500), util.Prioritized(imageFinder{b}, 600)),
		),
		goldmark.WithRendererOptions(
			html.WithUnsafe(), // authors may write HTML; values are escaped elsewhere
			renderer.WithNodeRenderers(util.Prioritized(nodeRenderer{}, 500)),
		),
	)
	var out bytes.Buffer
	if err := md.Convert([]byte(source), &out); err != nil { // writing to a buffer does not fail
		panic(err)
	}
	return asButtons(strings.NewReplacer("<table>", `<table class="data">`, "<th>", `<th scope="col">`, "<th style", `<th scope="col" style`).Replace(b.extractTagRows(out.String())))
}

// linkValues makes links of <{{ event.url }}>, which Markdown does not recognise as an address.
func (b *builder) linkValues(source string) string {
	return regexp.MustCompile(`<(`+b.key+`[a-p]+x)>`).ReplaceAllString(source, "[$1]($1)")
}

// separateConditions puts the tags of a condition that is a paragraph of one line on their own
// lines, so that no empty paragraph is left if the condition is false.
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

// splitCondition splits a line that is one condition into tags and contents; it returns any
// other line unchanged.
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

// onlyTags returns the tags of a line that has nothing else; nil for any other line.
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

// depth returns how many blocks the tags leave open (negative: close), and the lowest depth on
// the way.
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

// tagsAsRows turns tags between the rows of a table into rows, so that they do not end the
// table; extractTagRows reverses this. Tags that close or open a block outside the table end
// it.
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

// balancedRows counts the first rows that close all blocks they open: 1 for a row without tags,
// 0 if they do not close them.
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

// extractTagRows replaces rows of tags by the tags.
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

// tagLineParser parses tag lines.
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

// nodeRenderer renders tag lines and insets.
type nodeRenderer struct{}

func (nodeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(kindTagLine, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString(n.(*tagLine).words + "\n") // to a buffer, as below
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(notifytext.KindInset, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString("<div class=\"inset\">\n")
		} else {
			_, _ = w.WriteString("</div>\n")
		}
		return ast.WalkContinue, nil
	})
}

// listJoiner joins lists that have only Liquid tags between them: a loop over items makes one
// list.
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

// run returns the first list and the last node of the nodes from start that form one list; nil
// if there is nothing to join.
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

// into replaces the nodes from start to last by one list of their items and tags.
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
