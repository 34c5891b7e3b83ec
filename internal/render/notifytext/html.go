package notifytext

import (
	"html"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// Styles of the elements. Mail programs drop style sheets, so each element has its own.
const (
	textStyle     = "font-family: Helvetica, Arial, sans-serif; color: #0B0C0C;"
	bodyStyle     = textStyle + " font-size: 19px; line-height: 25px;"
	paragraphOpen = `<p style="margin: 0 0 20px 0; ` + bodyStyle + `">`
	titleOpen     = `<h2 style="margin: 0 0 20px 0; padding: 0; ` + textStyle + ` font-size: 27px; line-height: 35px; font-weight: bold;">`
	headingOpen   = `<h3 style="margin: 0 0 15px 0; padding: 10px 0 0 0; ` + textStyle + ` font-size: 19px; line-height: 25px; font-weight: bold;">`
	ruleTag       = `<hr style="margin: 30px 0; border: 0; height: 1px; background: #B1B4B6;">`
	insetOpen     = `<div style="margin: 0 0 20px 0; padding: 15px 0 1px 15px; border-left: 10px solid #B1B4B6; ` + bodyStyle + `">`
	listOpen      = `<table role="presentation" style="padding: 0 0 20px 0;"><tr><td style="` + textStyle + `">`
	listClose     = `</td></tr></table>`
	itemOpen      = `<li style="margin: 5px 0; padding: 0 0 0 5px; ` + bodyStyle + `">`
	linkStyle     = "word-wrap: break-word; color: #1D70B8;"
)

// writeHTML returns the body of a mail as HTML, without a page around it.
func writeHTML(doc ast.Node, source []byte) string {
	w := htmlWriter{source: source}
	w.blocks(doc)
	return w.String()
}

type htmlWriter struct {
	strings.Builder
	source []byte
}

func (w *htmlWriter) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.block(n)
	}
}

func (w *htmlWriter) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		switch n.Level {
		case 1:
			w.inline(titleOpen, n, "</h2>\n")
		case 2:
			w.inline(headingOpen, n, "</h3>\n")
		default:
			w.inline(paragraphOpen, n, "</p>\n")
		}
	case *ast.Paragraph, *ast.TextBlock:
		w.inline(paragraphOpen, n, "</p>\n")
	case *ast.ThematicBreak:
		w.WriteString(ruleTag + "\n")
	case *Inset:
		w.WriteString(insetOpen + "\n")
		w.blocks(n)
		w.WriteString("</div>\n")
	case *ast.List:
		w.list(n)
	case *extast.Table, *extast.FootnoteList, *extast.Footnote:
		// Notify drops them.
	default:
		w.blocks(n)
	}
}

func (w *htmlWriter) list(list *ast.List) {
	style := `style="margin: 0 0 0 20px; padding: 0; list-style-type: `
	start, end := "<ul "+style+`disc;">`, "</ul>"
	if list.IsOrdered() {
		start, end = "<ol "+style+`decimal;">`, "</ol>"
		if list.Start != 1 {
			start = `<ol start="` + strconv.Itoa(list.Start) + `" ` + style + `decimal;">`
		}
	}
	w.WriteString(listOpen + start + "\n")
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		w.WriteString(itemOpen)
		for n := item.FirstChild(); n != nil; n = n.NextSibling() {
			switch n.(type) {
			case *ast.Paragraph, *ast.TextBlock:
				if n.PreviousSibling() != nil {
					w.WriteString("<br><br>")
				}
				w.inline("", n, "")
			default:
				w.block(n)
			}
		}
		w.WriteString("</li>\n")
	}
	w.WriteString(end + listClose + "\n")
}

var escapeText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// inline writes a block of text; nothing if it has no text.
func (w *htmlWriter) inline(start string, n ast.Node, end string) {
	all := pieces(n, w.source)
	if len(all) == 0 {
		return
	}
	w.WriteString(start)
	for _, p := range all {
		switch p.kind {
		case words, address:
			w.WriteString(escapeText.Replace(p.text))
		case lineBreak:
			w.WriteString("<br>\n")
		case linkStart:
			w.WriteString(`<a style="` + linkStyle + `" href="` + html.EscapeString(p.url) + `"`)
			if p.title != "" {
				w.WriteString(` title="` + html.EscapeString(p.title) + `"`)
			}
			w.WriteString(">")
		case linkEnd:
			w.WriteString("</a>")
		}
	}
	w.WriteString(end)
}
