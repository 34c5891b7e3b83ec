package notifytext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// dialect parses the Markdown of Notify: headings, lists, insets, rules, links and bare
// addresses. Tables, footnotes and images are recognised in order to be dropped. Emphasis, code
// and HTML are text.
var dialect = parser.NewParser(
	parser.WithBlockParsers(
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(InsetParser{}, 750),
		util.Prioritized(extension.NewFootnoteBlockParser(), 999),
		util.Prioritized(paragraphParser{parser.NewParagraphParser()}, 1000),
	),
	parser.WithInlineParsers(
		util.Prioritized(extension.NewFootnoteParser(), 101),
		util.Prioritized(parser.NewLinkParser(), 200),
	),
	parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
	parser.WithASTTransformers(util.Prioritized(extension.NewFootnoteASTTransformer(), 999)),
)

// Limits of the structure of a text, beyond which Markdown is not read: lists inside lists cost
// more than their length.
const (
	maxMarkers  = 32 // bullets at the beginning of one line
	maxBrackets = 1000
)

// parse reads a text, whose values are inserted, as Markdown. It returns the source to which the
// segments of the nodes refer.
func parse(source string) (ast.Node, []byte) {
	source = strings.ReplaceAll(source, "\r", "")
	raw := make([]byte, 0, len(source)+64)
	if strings.Count(source, "[") > maxBrackets {
		source = strings.ReplaceAll(source, "[", `\[`)
	}
	for line := range strings.Lines(source) {
		raw = appendLine(raw, line)
	}
	return dialect.Parse(text.NewReader(raw)), raw
}

// appendLine appends a line whose markers goldmark reads as Notify does: • begins an item, + and
// 1) do not.
func appendLine(dst []byte, line string) []byte {
	rest := strings.TrimLeft(line, " \t")
	dst = append(dst, line[:len(line)-len(rest)]...)
	switch {
	case strings.HasPrefix(rest, "•"):
		dst, rest = append(dst, "* "...), strings.TrimLeft(strings.TrimPrefix(rest, "•"), " \t")
	case strings.HasPrefix(rest, "+"):
		dst = append(dst, '\\')
	case rest != "" && '0' <= rest[0] && rest[0] <= '9':
		if n := len(rest) - len(strings.TrimLeft(rest, "0123456789")); strings.HasPrefix(rest[n:], ")") {
			dst, rest = append(append(dst, rest[:n]...), '\\'), rest[n:]
		}
	}
	if markers(rest) > maxMarkers {
		dst = append(dst, '\\')
	}
	return append(dst, rest...)
}

// markers returns how many markers of lists and insets a line begins with.
func markers(line string) int {
	n := 0
	for {
		line = strings.TrimLeft(line, " \t")
		digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
		switch {
		case digits > 0 && strings.HasPrefix(line[digits:], "."):
			line = line[digits+1:]
		case line != "" && strings.IndexByte("-*^", line[0]) >= 0:
			line = line[1:]
		default:
			return n
		}
		if n++; n > maxMarkers {
			return n
		}
	}
}

// paragraphParser takes indented lines as well, since there is no block of code.
type paragraphParser struct{ parser.BlockParser }

func (paragraphParser) CanAcceptIndentedLine() bool { return true }

// An Inset is a block of lines that begin with ^.
type Inset struct{ ast.BaseBlock }

// KindInset is the kind of Inset.
var KindInset = ast.NewNodeKind("Inset")

// Kind implements ast.Node.
func (n *Inset) Kind() ast.NodeKind { return KindInset }

// Dump implements ast.Node.
func (n *Inset) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// InsetParser parses insets in the way of block quotes.
type InsetParser struct{}

// Trigger implements parser.BlockParser.
func (InsetParser) Trigger() []byte { return []byte{'^'} }

func (InsetParser) take(reader text.Reader) bool {
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

// Open implements parser.BlockParser.
func (p InsetParser) Open(_ ast.Node, reader text.Reader, _ parser.Context) (ast.Node, parser.State) {
	if !p.take(reader) {
		return nil, parser.NoChildren
	}
	return &Inset{}, parser.HasChildren
}

// Continue implements parser.BlockParser.
func (p InsetParser) Continue(_ ast.Node, reader text.Reader, _ parser.Context) parser.State {
	if !p.take(reader) {
		return parser.Close
	}
	return parser.Continue | parser.HasChildren
}

// Close implements parser.BlockParser.
func (InsetParser) Close(ast.Node, text.Reader, parser.Context) {}

// CanInterruptParagraph implements parser.BlockParser.
func (InsetParser) CanInterruptParagraph() bool { return true }

// CanAcceptIndentedLine implements parser.BlockParser.
func (InsetParser) CanAcceptIndentedLine() bool { return false }

// bareAddress matches an address in running text, up to the punctuation after it.
var bareAddress = regexp.MustCompile(`(?i)https?://[^\s<]*[^\s<.,:;!?"')\]]`)

// A piece is a part of a line of text.
type piece struct {
	kind  pieceKind
	text  string // of words and addresses
	url   string // of the beginning of a link
	title string
}

type pieceKind uint8

const (
	words pieceKind = iota
	address
	lineBreak
	linkStart // of a link with a text of its own
	linkEnd
)

// pieces returns the inline contents of a block, with typography.
func pieces(block ast.Node, source []byte) []piece {
	all := appendPieces(nil, block, source, false)
	setTypography(all)
	if len(all) > 0 && all[0].kind == words {
		all[0].text = strings.TrimLeft(all[0].text, " \t")
	}
	return all
}

func appendPieces(all []piece, parent ast.Node, source []byte, inLink bool) []piece {
	var raw []byte // of texts that follow each other
	flush := func() {
		all = appendText(all, raw, inLink)
		raw = nil
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n, ok := n.(*ast.Text); ok {
			raw = append(raw, n.Segment.Value(source)...)
			if n.SoftLineBreak() || n.HardLineBreak() {
				flush()
				all = append(all, piece{kind: lineBreak})
			}
			continue
		}
		flush()
		switch n := n.(type) {
		case *ast.String:
			all = appendWords(all, string(n.Value))
		case *ast.Link:
			url, ok := linkTarget(unescape(n.Destination))
			if !ok || inLink {
				all = appendPieces(all, n, source, inLink)
				continue
			}
			title := unescape(n.Title)
			all = append(all, piece{kind: linkStart, url: url, title: title})
			all = appendPieces(all, n, source, true)
			all = append(all, piece{kind: linkEnd, url: url, title: title})
		case *ast.Image, *extast.FootnoteLink, *extast.FootnoteBacklink:
			// Notify drops them.
		default:
			all = appendPieces(all, n, source, inLink)
		}
	}
	flush()
	return all
}

// appendText appends words and the bare addresses between them.
func appendText(all []piece, raw []byte, inLink bool) []piece {
	at := 0
	for _, found := range bareAddress.FindAllIndex(raw, -1) {
		if before, _ := utf8.DecodeLastRune(raw[:found[0]]); found[0] > 0 && (before == '_' || unicode.IsLetter(before) || unicode.IsDigit(before)) {
			continue
		}
		all = appendWords(all, unescape(raw[at:found[0]]))
		url := string(raw[found[0]:found[1]])
		if inLink {
			all = append(all, piece{kind: address, text: url})
		} else {
			all = append(all, piece{kind: linkStart, url: url}, piece{kind: address, text: url}, piece{kind: linkEnd, url: url})
		}
		at = found[1]
	}
	return appendWords(all, unescape(raw[at:]))
}

// appendWords joins words that follow each other.
func appendWords(all []piece, text string) []piece {
	if text == "" {
		return all
	}
	if n := len(all); n > 0 && all[n-1].kind == words {
		all[n-1].text += text
		return all
	}
	return append(all, piece{kind: words, text: text})
}

// unescape resolves entities and removes the backslashes of escaped characters.
func unescape(raw []byte) string {
	text := string(util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(raw))))
	return strings.ReplaceAll(text, `\•`, "•")
}

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://|^(?i:mailto|tel|sms):`)

// linkTarget returns the address of a link: with http:// if it has no scheme. It refuses the
// schemes that run code.
func linkTarget(url string) (string, bool) {
	url = strings.TrimSpace(url)
	if url == "" {
		return "", false
	}
	found := scheme.FindString(url)
	if found == "" {
		return "http://" + url, true
	}
	switch name, _, _ := strings.Cut(strings.ToLower(found), ":"); name {
	case "javascript", "vbscript", "data", "file":
		return "", false
	}
	return url, true
}
