package notifytext

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// ruleColumns is the length of rules and of the lines below headings.
const ruleColumns = 65

// writePlain returns the body of a mail as plain text.
func writePlain(doc ast.Node, source []byte) string {
	w := plainWriter{source: source}
	w.blocks(doc)
	return strings.TrimLeft(w.String(), " \t\n")
}

type plainWriter struct {
	strings.Builder
	source []byte
	indent string // of lists inside lists
}

func (w *plainWriter) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.block(n)
	}
}

func (w *plainWriter) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		switch n.Level {
		case 1:
			w.heading(n, "=")
		case 2:
			w.heading(n, "-")
		default:
			w.paragraph(n)
		}
	case *ast.Paragraph, *ast.TextBlock:
		w.paragraph(n)
	case *ast.ThematicBreak:
		w.WriteString("\n" + strings.Repeat("=-", ruleColumns/2) + "=\n")
	case *ast.List:
		w.list(n)
	case *extast.Table, *extast.FootnoteList, *extast.Footnote:
		// Notify drops them.
	default:
		w.blocks(n)
	}
}

func (w *plainWriter) heading(n ast.Node, line string) {
	if text := w.inline(n); text != "" {
		w.WriteString("\n\n\n" + text + "\n" + strings.Repeat(line, ruleColumns) + "\n")
	}
}

func (w *plainWriter) paragraph(n ast.Node) {
	if text := w.inline(n); text != "" {
		w.WriteString("\n" + text + "\n")
	}
}

func (w *plainWriter) list(list *ast.List) {
	if w.indent == "" {
		w.WriteString("\n")
	}
	outer := w.indent
	number := list.Start
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if list.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		w.WriteString(outer + mark)
		w.indent = outer + "  "
		for n := item.FirstChild(); n != nil; n = n.NextSibling() {
			switch n := n.(type) {
			case *ast.Paragraph, *ast.TextBlock:
				if n.PreviousSibling() != nil {
					w.WriteString("\n" + w.indent)
				}
				w.WriteString(w.inline(n) + "\n")
			default:
				if n.PreviousSibling() == nil {
					w.WriteString("\n")
				}
				w.block(n)
			}
		}
		if !item.HasChildren() {
			w.WriteString("\n")
		}
	}
	w.indent = outer
}

// inline returns the text of a block.
func (w *plainWriter) inline(n ast.Node) string {
	var b strings.Builder
	var texts []string // of the open link
	for _, p := range pieces(n, w.source) {
		switch p.kind {
		case words, address:
			b.WriteString(p.text)
		case lineBreak:
			b.WriteString("\n" + w.indent)
		case linkStart:
			texts = append(texts, b.String())
		case linkEnd:
			before := texts[len(texts)-1]
			texts = texts[:len(texts)-1]
			switch text := b.String()[len(before):]; {
			case text == p.url:
			case text == "":
				b.WriteString(p.url)
			case p.title != "":
				b.WriteString(" (" + p.title + "): " + p.url)
			default:
				b.WriteString(": " + p.url)
			}
		}
	}
	return b.String()
}
