// Package bodies turns what an author writes of a mail (Markdown or HTML, blocks,
// a layout, partials) into the HTML and the text that the writer of messages
// knows, which are Liquid.
//
// State: none. All is done when a template is compiled, so that a message costs
// what it costs with parts written by hand. Liquid is carried through as it
// stands: each output and tag is exchanged for a mark, a word that no rule of
// Markdown, HTML or CSS touches, and put back at the end. A value is therefore
// never read as Markdown, and is escaped where every value is.
//
// Failure: errors are *fanfare.Error with the pointer, line and column of what the
// author wrote, also where it stands in a layout or in a partial. [Part.Origin]
// leads from a line of what was made to the line that it was made from.
package bodies
