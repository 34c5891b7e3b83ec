// Package bodies generates the HTML and the text of a mail from what an author wrote: Markdown
// or HTML, blocks, a layout, partials. The result is Liquid, which package liquid compiles.
//
//	make.go         what is generated, and from which source
//	placeholder.go  replaces Liquid by placeholders, and partials by their text
//	markdown.go     Markdown to HTML
//	blocks.go       f-button and other blocks to tables
//	layout.go       the page around the content
//	css.go          style sheets to style attributes
//	text.go         HTML to text; textwrap.go wraps its lines
//
// State: none. Everything happens when a template is compiled, so that a message costs the same
// as with hand-written parts. Each output and tag of Liquid is replaced by a placeholder, a
// word that no rule of Markdown, HTML or CSS changes, and restored at the end. Values are
// therefore never parsed as Markdown, and they are escaped like all values.
//
// Failure: errors are *fanfare.Error with the pointer, line and column in what the author
// wrote, layouts and partials included. [Part.Origin] returns the source of a generated line.
package bodies
