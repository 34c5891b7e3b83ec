package bodies

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

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
