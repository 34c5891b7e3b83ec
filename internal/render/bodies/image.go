package bodies

import (
	"cmp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"
)

// images notes the images of a Markdown source that have no alternative text. Its HTML
// has an empty alt attribute for them, as for an image that its author declared to be
// decoration.
type images struct{ b *builder }

func (p images) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function below returns no error
		if img, ok := n.(*ast.Image); ok && entering && !img.HasChildren() {
			p.b.withoutAlt[string(util.URLEscape(img.Destination, true))] = string(img.Title)
		}
		return ast.WalkContinue, nil
	})
}

// image writes the alternative text of an image. Where its author wrote none, it writes
// the title, or else the address, unless that is useless in a text: an image within the
// mail, a tracking pixel, or the label of a link, which has an address of its own.
func (w *writer) image(t html.Token) {
	alt, src := attribute(t, "alt"), attribute(t, "src")
	title, missing := w.b.withoutAlt[src]
	switch {
	case alt != "":
		w.data(alt)
	case !missing && hasAttribute(t, "alt"):
	case title != "" || attribute(t, "title") != "":
		w.data(cmp.Or(title, attribute(t, "title")))
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

// isWebAddress reports whether a reader of the text can open the address. One that
// begins with a value is taken for such.
func (b *builder) isWebAddress(address string) bool {
	lower := strings.ToLower(address)
	at := b.word.FindStringIndex(address)
	return strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "http://") || at != nil && at[0] == 0
}

func isPixel(t html.Token) bool {
	small := func(size string) bool { return size == "0" || size == "1" }
	return small(strings.TrimSuffix(attribute(t, "width"), "px")) || small(strings.TrimSuffix(attribute(t, "height"), "px"))
}
