package liquid

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/render/jsonschema"
)

// Liquid evaluates a missing field to nil and continues. To notice missing fields, every path
// in a template is rewritten:
//
//	event.tags[0].name  becomes  (event | fanfare_read: fanfare_usage, 'event.tags[0].name', 'tags', 0, 'name')
//
// or with fanfare_read_optional where the template asks whether there is a value. The library
// accepts an expression in parentheses wherever it accepts a path.

type tokenKind uint8

const (
	other      tokenKind = iota // an operator or a single character
	identifier                  // a variable, a filter without arguments, or an operator word
	keyword                     // name: (a filter with arguments, a loop modifier, a named argument)
	property                    // .name
	literal                     // a string or a number
)

type token struct {
	kind       tokenKind
	text       string // without the colon of a keyword and the dot of a property
	start, end int    // in the source
}

// tokenize splits an expression as the scanner of the library does, without white space.
func tokenize(src string) []token {
	var tokens []token
	for i := 0; i < len(src); {
		start, kind, text := i, other, ""
		c := src[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
			i++
			continue
		case c == '"' || c == '\'':
			kind, i = literal, closeQuote(src, i)
		case digit(c) || c == '-' && i+1 < len(src) && digit(src[i+1]):
			kind = literal
			for i++; i < len(src) && digit(src[i]); i++ {
			}
			if i+1 < len(src) && src[i] == '.' && digit(src[i+1]) {
				for i++; i < len(src) && digit(src[i]); i++ {
				}
			}
		case nameStart(c):
			kind, i = identifier, nameEnd(src, i)
			text = src[start:i]
			if i < len(src) && src[i] == ':' {
				kind = keyword
				i++
			}
		case c == '.' && i+1 < len(src) && nameStart(src[i+1]):
			kind, i = property, nameEnd(src, i+1)
			text = src[start+1 : i]
		default:
			i++
			if i < len(src) && strings.Contains(" == != >= <= .. ", " "+src[start:i+1]+" ") {
				i++
			}
		}
		if text == "" {
			text = src[start:i]
		}
		tokens = append(tokens, token{kind, text, start, i})
	}
	return tokens
}

func closeQuote(src string, i int) int {
	quote := src[i]
	for i++; i < len(src); i++ {
		switch {
		case src[i] == '\\' && quote == '"' && i+1 < len(src):
			i++
		case src[i] == quote:
			return i + 1
		}
	}
	return i
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func nameStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= utf8.RuneSelf
}

func nameEnd(src string, i int) int {
	for i < len(src) && (nameStart(src[i]) || digit(src[i]) || src[i] == '-') {
		i++
	}
	if i < len(src) && src[i] == '?' {
		i++
	}
	return i
}

// A Path is one use of a variable in a template.
type Path struct {
	Root     string // a built-in variable; "" if the path cannot be traced back to one
	Steps    []jsonschema.Step
	Text     string // as it is in the source
	Line     int
	Assigned bool // it reads a variable of assign or capture
	Looped   bool // it is the list of a loop, whose elements are not read here
}

// Names returns the steps of a path that has names only.
func (p Path) Names() ([]string, bool) {
	names := make([]string, 0, len(p.Steps))
	for _, s := range p.Steps {
		if s.Name == "" {
			return nil, false
		}
		names = append(names, s.Name)
	}
	return names, true
}

// An expression is a rewritten expression with the paths that it reads.
type expression struct {
	source    string
	paths     []Path
	filters   []string // names, in order
	single    bool     // it is one path and nothing else
	longRange bool     // it has a range that may be long
	localized []localizedFilter
	need      LocalizationNeed
}

// first returns the source of the first path.
func (e expression) first() string {
	if len(e.paths) == 0 {
		return "\x00" // no source begins with it
	}
	return e.paths[0].Text
}

// A localizedFilter is a use of a localized filter, with the tokens that follow its name.
type localizedFilter struct {
	name  string
	after []token
}

// maxRange is the longest range (1..9). Ends of ranges are numbers, so that no event can keep a
// template busy.
const maxRange = 1000

// rewrite rewrites src. If lenient, no missing value is noticed; otherwise a path directly
// before the filter default may be missing. skip is the number of leading tokens that name a
// variable and do not read it.
func rewrite(src string, line int, lenient bool, skip int) expression {
	return rewriter{src: src, tokens: tokenize(src), line: line, lenient: lenient}.expression(skip)
}

// rewriteLoop rewrites the arguments of a loop: NAME in LIST.
func rewriteLoop(src string, line int) expression {
	return rewriter{src: src, tokens: tokenize(src), line: line, loop: true}.expression(loopNames)
}

// loopNames is the number of tokens of a loop before its list.
const loopNames = 2

func (r rewriter) expression(skip int) expression {
	src := r.src
	r.at = min(skip, len(r.tokens))
	if r.at > 0 {
		r.out = append(r.out, src[:r.tokens[r.at-1].end]...)
	}
	r.run("")
	e := expression{source: string(r.out), paths: r.paths, filters: r.filters, localized: r.localized, need: r.need}
	e.longRange = hasLongRange(r.tokens)
	e.single = len(r.paths) == 1 && r.paths[0].Text == strings.TrimSpace(src)
	return e
}

func hasLongRange(tokens []token) bool {
	for i, t := range tokens {
		if t.kind != other || t.text != ".." {
			continue
		}
		if i == 0 || i+1 == len(tokens) {
			return true
		}
		from, err1 := strconv.Atoi(tokens[i-1].text)
		to, err2 := strconv.Atoi(tokens[i+1].text)
		if err1 != nil || err2 != nil || to-from > maxRange {
			return true
		}
	}
	return false
}

type rewriter struct {
	src       string
	tokens    []token
	at        int
	line      int
	lenient   bool
	loop      bool
	out       []byte
	paths     []Path
	filters   []string
	localized []localizedFilter
	need      LocalizationNeed
}

// run copies tokens up to the closing bracket and rewrites paths.
func (r *rewriter) run(until string) {
	operand := false // the last token was an operand, so a name here is a modifier
	for r.at < len(r.tokens) {
		t := r.tokens[r.at]
		if until != "" && t.kind == other && t.text == until {
			return
		}
		r.gap()
		switch {
		case t.kind == identifier && !operand && !reserved(t.text):
			r.path()
			operand = true
			continue
		case t.kind == other && t.text == "|":
			r.countInput()
			r.copy()
			if r.at < len(r.tokens) && (r.tokens[r.at].kind == identifier || r.tokens[r.at].kind == keyword) {
				f := r.tokens[r.at]
				r.filters = append(r.filters, f.text)
				r.gap()
				r.filter(f)
				operand = f.kind == identifier
				continue
			}
		case t.kind == other && t.text == "[":
			r.copy()
			r.run("]")
			continue
		default:
			r.copy()
		}
		operand = t.kind == literal || t.kind == property || t.text == ")" || t.text == "]" ||
			t.kind == identifier && constant(t.text)
	}
}

func reserved(name string) bool {
	return constant(name) || strings.Contains(" and or contains in ", " "+name+" ")
}

func constant(name string) bool { return strings.Contains(" true false nil ", " "+name+" ") }

// gap copies the white space before the next token.
func (r *rewriter) gap() {
	from := 0
	if r.at > 0 {
		from = r.tokens[r.at-1].end
	}
	r.out = append(r.out, r.src[from:r.tokens[r.at].start]...)
}

func (r *rewriter) copy() {
	t := r.tokens[r.at]
	r.out = append(r.out, r.src[t.start:t.end]...)
	r.at++
}

// countInput inserts the counting of the filter's input, if the filter reads all of it.
func (r *rewriter) countInput() {
	if r.at+1 >= len(r.tokens) {
		return
	}
	if times := passes(r.tokens[r.at+1].text); times > 0 {
		r.out = append(r.out, "| "+countFilter+": "+usageVariable+", "+strconv.Itoa(times)+" "...)
	}
}

// filter copies the name of a filter, and passes the localization to a localized one.
func (r *rewriter) filter(f token) {
	after := r.tokens[r.at+1:]
	if end := slices.IndexFunc(after, func(t token) bool { return t.text == "|" && t.kind == other }); end >= 0 {
		after = after[:end]
	}
	needs := localizationNeeded(f.text, after)
	if needs == NotLocalized {
		r.copy()
		return
	}
	r.need = max(r.need, needs)
	r.localized = append(r.localized, localizedFilter{f.text, after})
	r.out = append(r.out, localizedPrefix+f.text+": "+LocalizationVariable...)
	if f.kind == keyword {
		r.out = append(r.out, ',')
	}
	r.at++
}

// path rewrites the path that begins at the current token.
func (r *rewriter) path() {
	start := r.tokens[r.at].start
	p := Path{Root: r.tokens[r.at].text, Line: r.line}
	index := len(r.paths)
	r.paths = append(r.paths, p) // reserves its place before the paths in its brackets
	r.at++

	before := r.out
	var args strings.Builder
	for r.at < len(r.tokens) {
		t := r.tokens[r.at]
		if t.kind == property {
			p.Steps = append(p.Steps, jsonschema.Step{Name: t.text})
			args.WriteString(", '" + t.text + "'")
			r.at++
			continue
		}
		if t.kind != other || t.text != "[" {
			break
		}
		r.at++
		first := r.at
		r.out = nil
		r.run("]")
		args.WriteString(", (" + strings.TrimSpace(string(r.out)) + ")")
		p.Steps = append(p.Steps, bracket(r.tokens[first:r.at]))
		r.at = min(r.at+1, len(r.tokens))
	}
	r.out = before
	p.Text = strings.Join(strings.Fields(r.src[start:r.tokens[r.at-1].end]), " ")
	if p.Root == FieldsVariable && len(p.Steps) > 0 { // as its author wrote it
		p.Text = "((" + strings.TrimSuffix(strings.TrimSuffix(p.Steps[0].Name, presentSuffix), yesSuffix) + "))"
	}
	r.paths[index] = p
	if r.loop { // a missing list or limit does not fail the loop
		end := boundFilter
		if index == 0 {
			end = listFilter
		}
		r.out = append(r.out, '(')
		defer func() { r.out = append(r.out, " | "+end+")"...) }()
	}
	if len(p.Steps) == 0 {
		r.out = append(r.out, p.Root...)
		return
	}
	filter := readFilter + ": " + usageVariable + ","
	if r.lenient || r.beforeDefault() {
		filter = readOptionalFilter + ":"
	}
	r.out = append(r.out, "("+p.Root+" | "+filter+" '"+QuotePath(p.Text)+"'"+args.String()+")"...)
}

func (r *rewriter) beforeDefault() bool {
	return r.at+1 < len(r.tokens) && r.tokens[r.at].text == "|" && r.tokens[r.at].kind == other &&
		r.tokens[r.at+1].text == "default"
}

// bracket returns the step between the brackets of a path.
func bracket(tokens []token) jsonschema.Step {
	if len(tokens) != 1 || tokens[0].kind != literal {
		return jsonschema.Step{}
	}
	text := tokens[0].text
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return jsonschema.Step{Index: true}
	}
	if len(text) > 2 && !strings.Contains(text, `\`) {
		return jsonschema.Step{Name: text[1 : len(text)-1]}
	}
	return jsonschema.Step{}
}
