package bodies

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/osteele/liquid/parser"

	"fanfare.dev/fanfare"
)

// A placeholder stands for one output or tag of Liquid. In a text it is a word,
// which may also stand in an address: the key, its number in the digits a to p, and an x.
type placeholder struct {
	source string // the Liquid
	tag    string // name of the tag, "" for an output
	args   string
	origin
}

// closes and opens tell whether the tag closes or opens a block.
func (m *placeholder) closes() bool { return strings.HasPrefix(m.tag, "end") }
func (m *placeholder) opens() bool {
	return slices.Contains([]string{"if", "unless", "case", "for", "tablerow", "capture"}, m.tag)
}

// A builder generates the parts of one message.
type builder struct {
	partials     map[string]string
	key          string
	pattern      *regexp.Regexp // matches a placeholder
	placeholders []placeholder
	// withoutAlt has the address and the title of each image without alternative text.
	withoutAlt map[string]string
	errors     []*fanfare.Error
}

func newBuilder(src Source) *builder {
	b := &builder{key: "qlq", partials: src.Partials, withoutAlt: map[string]string{}}
	all := strings.ToLower(src.Subject + src.Markdown + src.HTML + src.Text + src.Lang + src.CustomLayout)
	for _, text := range src.Partials {
		all += strings.ToLower(text)
	}
	for strings.Contains(all, b.key) {
		b.key += "q"
	}
	b.pattern = regexp.MustCompile(b.key + `[a-p]+x`)
	return b
}

// add stores a placeholder and returns its word.
func (b *builder) add(m placeholder) string {
	b.placeholders = append(b.placeholders, m)
	return b.key + strings.Map(toWord, strconv.FormatInt(int64(len(b.placeholders)-1), 16)) + "x"
}

const digits, wordDigits = "0123456789abcdef", "abcdefghijklmnop"

func toWord(digit rune) rune { return rune(wordDigits[strings.IndexRune(digits, digit)]) }
func toDigit(c rune) rune    { return rune(digits[strings.IndexRune(wordDigits, c)]) }

// at returns the placeholder of a word.
func (b *builder) at(word string) *placeholder {
	n, err := strconv.ParseInt(strings.Map(toDigit, word[len(b.key):len(word)-1]), 16, 32)
	if err != nil || int(n) >= len(b.placeholders) {
		return &placeholder{}
	}
	return &b.placeholders[n]
}

// replaceLiquid replaces the Liquid of a file by placeholders. A raw block and a comment are
// one placeholder.
func (b *builder) replaceLiquid(f *File) string { return b.replaceLiquidIn(f, nil) }

// replaceLiquidIn is replaceLiquid inside partials, the innermost last.
func (b *builder) replaceLiquidIn(f *File, within []inclusion) string {
	f.Text = strings.ReplaceAll(strings.ReplaceAll(f.Text, "\r\n", "\n"), "\r", "\n")
	var out strings.Builder
	var open []openBlock
	tokens := parser.Scan(f.Text, parser.SourceLoc{LineNo: 1}, nil)
	at := 0
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		start := at
		at += len(t.Source)
		switch t.Type {
		case parser.TextTokenType:
			b.checkUnclosed(f, start, t.Source)
			out.WriteString(t.Source)
		case parser.ObjTokenType:
			out.WriteString(b.add(placeholder{source: renameVariables(t.Source, within), args: t.Args, origin: origin{f, t.SourceLoc.LineNo}}))
		case parser.TagTokenType:
			m := placeholder{source: t.Source, tag: t.Name, args: t.Args, origin: origin{f, t.SourceLoc.LineNo}}
			if t.Name == "raw" || t.Name == "comment" {
				for i++; i < len(tokens) && tokens[i].Name != "end"+t.Name; i++ {
					at += len(tokens[i].Source)
				}
				if i == len(tokens) {
					b.fail(f.fault(start, "close it with {% end"+t.Name+" %}", t.Name+" is not closed"))
					continue
				}
				at += len(tokens[i].Source)
				m.source = f.Text[start:at]
			}
			if t.Name == "render" {
				out.WriteString(b.include(f, start, t.Args, within))
				continue
			}
			if m.tag != "raw" {
				m.source = renameVariables(m.source, within)
			}
			if wrong := shadowedVariable(f, start, m, within); wrong != nil {
				b.fail(wrong)
			}
			open = b.checkNesting(f, start, m, open)
			out.WriteString(b.add(m))
		}
	}
	for _, o := range open {
		b.fail(f.fault(o.at, "close it with {% end"+o.tag+" %}", o.tag+" is not closed"))
	}
	return out.String()
}

// An openBlock is a block of Liquid that is open.
type openBlock struct {
	tag string
	at  int
}

// checkNesting checks that the blocks of a file are closed in the file.
func (b *builder) checkNesting(f *File, at int, m placeholder, open []openBlock) []openBlock {
	switch {
	case m.opens():
		return append(open, openBlock{m.tag, at})
	case !m.closes():
		return open
	}
	if n := len(open); n > 0 && m.tag == "end"+open[n-1].tag {
		return open[:n-1]
	}
	hint := "remove it: no block is open here"
	if n := len(open); n > 0 {
		hint = "close {% " + open[n-1].tag + " %} first"
	}
	b.fail(f.fault(at, hint, m.tag+" without an opening tag"))
	return open
}

func (b *builder) checkUnclosed(f *File, at int, text string) {
	for _, open := range []string{"{{", "{%"} {
		if i := strings.Index(text, open); i >= 0 {
			b.fail(f.fault(at+i, "close it, or write {% raw %} around it", open+" is not closed"))
		}
	}
}

// lineSeparator is a line break without output.
const lineSeparator = "{%comment%}\n{%endcomment%}"

func (b *builder) fail(err *fanfare.Error) { b.errors = append(b.errors, err) }

// restoreLiquid replaces the placeholders by their Liquid. It starts a new line inside Liquid
// if the next placeholder comes from another line, so that each line has one origin.
func (b *builder) restoreLiquid(text string, liquid func(*placeholder) string) Part {
	var out strings.Builder
	var p Part
	var last *placeholder // on the current line
	from := 0
	for _, at := range b.pattern.FindAllStringIndex(text, -1) {
		between := text[from:at[0]]
		m := b.at(text[at[0]:at[1]])
		from = at[1]
		out.WriteString(between)
		if n := strings.Count(between, "\n"); n > 0 {
			p.end(last, n)
			last = nil
		}
		source := liquid(m)
		if last != nil && m.file != nil && last.origin != m.origin {

			out.WriteString(lineSeparator)
			p.end(last, 1)
		}
		out.WriteString(source)
		if m.file != nil {
			last = m
		}
		if n := strings.Count(source, "\n"); n > 0 {
			for i := range n {
				p.lines = append(p.lines, origin{m.file, m.line + i})
			}
			last = nil
			if m.file != nil {
				last = &placeholder{origin: origin{m.file, m.line + n}}
			}
		}
	}
	out.WriteString(text[from:])
	p.end(last, strings.Count(text[from:], "\n")+1)
	p.Source = out.String()
	return p
}

// end sets the origin of the line that ends, and of empty lines.
func (p *Part) end(m *placeholder, lines int) {
	if m == nil {
		m = &placeholder{}
	}
	p.lines = append(p.lines, m.origin)
	for range lines - 1 {
		p.lines = append(p.lines, origin{})
	}
}

// maxNesting is the greatest depth of partials in partials.
const maxNesting = 8

var (
	renderTag   = regexp.MustCompile(`\{%-?\s*render\s`)
	partialName = regexp.MustCompile(`^\s*["']([^"']+)["']\s*,?\s*`)
	argument    = regexp.MustCompile(`^\s*(\w+):\s*("[^"]*"|'[^']*'|[\w.\-\[\]]+)\s*,?`)
	identifier  = regexp.MustCompile(`"[^"]*"|'[^']*'|\.?[\pL_][\w\-]*:?`)
	localName   = regexp.MustCompile(`^\s*([\pL_][\w\-]*)`)
)

// PartialNames returns the names of the partials that a text renders.
func PartialNames(text string) (names []string) {
	for _, at := range renderTag.FindAllStringIndex(text, -1) {
		if found := partialName.FindStringSubmatch(text[at[1]:]); found != nil {
			names = append(names, found[1])
		}
	}
	return names
}

// An inclusion is a partial with its arguments.
type inclusion struct {
	name  string
	given map[string]string // variables of the partial, as expressions of the template
}

// include returns the text of the partial that a render tag names, with placeholders.
func (b *builder) include(f *File, at int, args string, within []inclusion) string {
	found := partialName.FindStringSubmatch(args)
	if found == nil {
		b.fail(f.fault(at, `write {% render "name" %}, with an argument name: value for each variable that the partial needs`, "render requires the name of a partial"))
		return ""
	}
	one := inclusion{found[1], map[string]string{}}
	for rest := args[len(found[0]):]; strings.TrimSpace(rest) != ""; {
		arg := argument.FindStringSubmatch(rest)
		if arg == nil {
			b.fail(f.fault(at, "pass variables and literals as arguments, such as name: event.title", "render cannot parse "+strings.TrimSpace(rest)))
			return ""
		}
		one.given[arg[1]] = renameVariables(arg[2], within)
		rest = rest[len(arg[0]):]
	}
	text, ok := b.partials[one.name]
	if !ok {
		b.fail(f.fault(at, "define it under partials in the document", "unknown partial "+one.name))
		return ""
	}
	for _, outer := range within {
		if outer.name == one.name {
			b.fail(f.fault(at, "a partial cannot render itself", "partial "+one.name+" renders itself"))
			return ""
		}
	}
	if len(within) == maxNesting {
		b.fail(f.fault(at, "", "partials are nested too deeply"))
		return ""
	}
	return b.replaceLiquidIn(&File{f.Template, "partials/" + one.name, strings.TrimSuffix(text, "\n")}, append(within[:len(within):len(within)], one))
}

// renameVariables replaces the variables of a partial by its arguments.
func renameVariables(expression string, within []inclusion) string {
	if len(within) == 0 {
		return expression
	}
	given := within[len(within)-1].given
	return identifier.ReplaceAllStringFunc(expression, func(word string) string {
		if value, ok := given[word]; ok {
			return value
		}
		return word
	})
}

// shadowedVariable returns the error of a partial that assigns a variable which one of its
// arguments reads; nil if it does not.
func shadowedVariable(f *File, at int, m placeholder, within []inclusion) *fanfare.Error {
	if len(within) == 0 || m.tag != "for" && m.tag != "assign" && m.tag != "capture" && m.tag != "tablerow" {
		return nil
	}
	found := localName.FindStringSubmatch(m.args)
	if found == nil {
		return nil
	}
	for name, value := range within[len(within)-1].given {
		root, _, _ := strings.Cut(value, ".")
		if found[1] == name || found[1] == root {
			return f.fault(at, "rename the variable of the partial", found[1]+" hides the argument "+name)
		}
	}
	return nil
}
