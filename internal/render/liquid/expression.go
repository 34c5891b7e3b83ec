package liquid

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/render/jsonschema"
)

// Liquid evaluates a missing field to nil and goes on. To notice that, every path in
// a template is rewritten before Liquid sees it:
//
//	event.tags[0].name  becomes  (event | fanfare_need: fanfare_effort, 'event.tags[0].name', 'tags', 0, 'name')
//
// or with fanfare_maybe where the template asks whether there is a value. A parenthesised
// expression may stand wherever a path may, so nothing else changes.

type tokenKind uint8

const (
	other      tokenKind = iota // an operator or a single character
	identifier                  // a variable, a filter without arguments, an operator word
	keyword                     // name: (a filter with arguments, a loop modifier, a named argument)
	property                    // .name
	literal                     // a string or a number
)

type token struct {
	kind       tokenKind
	text       string // without the colon of a keyword and the dot of a property
	start, end int    // in the source
}

// tokenize splits an expression as Liquid's own scanner does. White space is left
// out.
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

// A path is one use of a variable in a template.
type Path struct {
	Root     string // "" where it cannot be traced back to a variable that every template has
	Steps    []jsonschema.Step
	Text     string // as it stands in the source
	Line     int
	Assigned bool // reads a variable of assign or capture
	Looped   bool // goes through all that is there, without reading it
}

// Names returns the names of a path that consists of nothing else.
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

// An expression is the rewritten source of one, and the paths it reads.
type expression struct {
	source    string
	paths     []Path
	filters   []string // names, in order
	single    bool     // nothing but one path
	longRange bool     // a range that may be long
	localized []localizedFilter
	need      LocalizationNeed
}

// first is the first path as it is spelled.
func (e expression) first() string {
	if len(e.paths) == 0 {
		return "\x00" // which nothing begins with
	}
	return e.paths[0].Text
}

// A voiced filter is one that speaks, with the tokens that follow it.
type localizedFilter struct {
	name  string
	after []token
}

// maxRange is how far the ends of a range (1..9) may be apart. They are numbers,
// so that no event can keep a template busy.
const maxRange = 1000

// rewrite rewrites src. lenient says that it asks whether there is a value; otherwise
// only a path that stands directly before the filter default does. skip is the number of
// leading tokens that name a variable rather than read it.
func rewrite(src string, line int, lenient bool, skip int) expression {
	return rewriter{src: src, tokens: tokenize(src), line: line, lenient: lenient}.expression(skip)
}

// rewriteLoop rewrites what follows the name of a loop: NAME in LIST.
func rewriteLoop(src string, line int) expression {
	return rewriter{src: src, tokens: tokenize(src), line: line, loop: true}.expression(loopNames)
}

// loopNames is how many tokens of a loop come before its list.
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

// run copies tokens up to the closing bracket, rewriting paths on the way.
func (r *rewriter) run(until string) {
	operand := false // the token before was one, so a name here is a modifier
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

// countInput has what the next filter goes through counted, where it goes through all of it.
func (r *rewriter) countInput() {
	if r.at+1 >= len(r.tokens) {
		return
	}
	if times := passes(r.tokens[r.at+1].text); times > 0 {
		r.out = append(r.out, "| "+countFilter+": "+usageVariable+", "+strconv.Itoa(times)+" "...)
	}
}

// filter copies the name of a filter; one that speaks is handed the voice.
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
	r.paths = append(r.paths, p) // keeps its place before those in its brackets
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
	if r.loop { // neither a list nor a limit that is not there fails the loop
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

// bracket tells what stands in the brackets of a path.
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
