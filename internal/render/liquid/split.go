package liquid

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/osteele/liquid/parser"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/jsonschema"
)

// A node is a top-level element of a template: a run of text, an output, a tag, or a block with
// its contents.
type node struct {
	source  string // rewritten Liquid
	line    int
	paths   []Path   // all that it reads
	assigns []string // variables that it assigns
	need    LocalizationNeed

	loopVariable string // the node is a loop over all items, with this variable
	ordered      bool   // it has a loop in which a pass depends on the passes before

	singlePath *Path // the node is an output of this path
	raw        bool  // with the filter raw
	fallback   any   // with the filter default and this literal; nil: without
}

// A splitter cuts the source of a part into nodes.
type splitter struct {
	part     *Part
	mode     Mode
	nodes    []node
	open     *node    // the top-level block under construction
	blocks   []string // names of the open blocks
	captured map[string]bool
	scope    scope
	errors   []*fanfare.Error
}

// split cuts source, which the library has accepted, into nodes.
func (s *splitter) split(source string) {
	tokens := parser.Scan(source, parser.SourceLoc{Pathname: "template", LineNo: 1}, nil)
	trimText(tokens)
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch t.Type {
		case parser.TextTokenType:
			s.text(t)
		case parser.ObjTokenType:
			s.output(t)
		case parser.TagTokenType:
			if t.Name == "raw" || t.Name == "comment" {
				i = s.verbatim(tokens, i)
				continue
			}
			s.tag(t)
		}
	}
}

// trimText does the work of {{-, -}}, {%- and -%}: it removes the white space of the
// neighbouring text. In Args it leaves the line ends that keep the line numbers right.
func trimText(tokens []parser.Token) {
	for i := range tokens {
		t := &tokens[i]
		if t.Type != parser.TextTokenType {
			continue
		}
		text, lines := t.Source, strings.Count(t.Source, "\n")
		if i > 0 && tokens[i-1].Type == parser.TrimRightTokenType {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
		if i+1 < len(tokens) && tokens[i+1].Type == parser.TrimLeftTokenType {
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		}
		if text != t.Source {
			t.Args = strings.Repeat("\n", lines-strings.Count(text, "\n"))
			t.Source = text
			t.Name = "trimmed"
		}
	}
}

func (s *splitter) text(t parser.Token) {
	for _, open := range []string{"{{", "{%"} {
		if i := strings.Index(t.Source, open); i >= 0 {
			s.addError(t.SourceLoc.LineNo+strings.Count(t.Source[:i], "\n"), open, "close it, or write {% raw %} around it", "%s is not closed", open)
		}
	}
	text := s.embedImages(t.Source, t.SourceLoc.LineNo)
	if braces := len(text) - len(strings.TrimRight(text, "{")); braces > 0 {
		// The next token may begin with another brace.
		text = text[:len(text)-braces] + `{{ "` + text[len(text)-braces:] + `" }}`
	}
	if t.Name == "trimmed" && t.Args != "" {
		text += "{%comment%}" + t.Args + "{%endcomment%}"
	}
	s.add(node{source: text, line: t.SourceLoc.LineNo})
}

func (s *splitter) output(t parser.Token) {
	e := rewrite(t.Args, t.SourceLoc.LineNo, false, 0)
	s.checkExpression(e, t.SourceLoc.LineNo)
	source := e.source
	if len(e.paths) > 0 && len(e.paths[0].Steps) == 0 && e.single && s.captured[e.paths[0].Root] {
		source += " | raw" // the contents of capture were escaped when they were captured
	}
	u := node{line: t.SourceLoc.LineNo, paths: append(s.scope.resolve(e.paths), s.memberPaths(t.Args, e, t.SourceLoc.LineNo)...), need: e.need}
	u.source = "{{" + withSpacing(t, "("+source+") | "+outputFilter) + "}}"
	u.singlePath, u.raw, u.fallback = simpleOutput(e, t.Args, u.paths)
	s.add(u)
}

// simpleOutput recognises the outputs that need no library: a path alone, with the filter raw,
// with the filter default and a literal, or with default and then raw.
func simpleOutput(e expression, src string, paths []Path) (single *Path, raw bool, fallback any) {
	if len(e.paths) != 1 || len(e.filters) > 2 {
		return nil, false, nil
	}
	if e.single {
		return &paths[0], false, nil
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(src), e.paths[0].Text)
	tokens := tokenize(rest)
	if n := len(tokens); n == 5 && tokens[3].text == "|" && tokens[4].text == "raw" {
		tokens, raw = tokens[:3], true
	}
	switch {
	case !ok || len(tokens) < 2 || tokens[0].text != "|":
	case len(tokens) == 2 && tokens[1].text == "raw":
		return &paths[0], true, nil
	case len(tokens) == 3 && tokens[1].kind == keyword && tokens[1].text == "default" && tokens[2].kind == literal:
		text := tokens[2].text
		if text[0] != '"' && text[0] != '\'' {
			return &paths[0], raw, parseNumber(text)
		}
		if len(text) >= 2 && !strings.Contains(text, `\`) {
			return &paths[0], raw, text[1 : len(text)-1]
		}
	}
	return nil, false, nil
}

// withSpacing puts args in place of the token's own, with the same line ends around.
func withSpacing(t parser.Token, args string) string {
	i := strings.Index(t.Source, t.Args)
	return strings.Repeat("\n", strings.Count(t.Source[:i], "\n")) + " " + args + " " +
		strings.Repeat("\n", strings.Count(t.Source[i+len(t.Args):], "\n"))
}

// verbatim copies a raw block and drops a comment. It returns the index of the closing token.
func (s *splitter) verbatim(tokens []parser.Token, i int) int {
	from, lines := i, 0
	var body strings.Builder
	for i++; i < len(tokens); i++ {
		t := tokens[i]
		if t.Type == parser.TagTokenType && t.Name == "end"+tokens[from].Name {
			break
		}
		body.WriteString(t.Source)
		if t.Name == "trimmed" {
			lines += len(t.Args)
		}
	}
	lines += strings.Count(tokens[from].Source+body.String(), "\n")
	if i < len(tokens) {
		lines += strings.Count(tokens[i].Source, "\n")
	}
	source := "{%comment%}" + strings.Repeat("\n", lines) + "{%endcomment%}"
	if tokens[from].Name == "raw" {
		source = "{%raw%}" + s.embedImages(body.String(), tokens[from].SourceLoc.LineNo) + "{%endraw%}"
	}
	s.add(node{source: source, line: tokens[from].SourceLoc.LineNo})
	return i
}

// add appends a node, or adds it to the open block.
func (s *splitter) add(u node) {
	if s.open == nil {
		s.nodes = append(s.nodes, u)
		return
	}
	s.open.source += u.source
	s.open.paths = append(s.open.paths, u.paths...)
	s.open.assigns = append(s.open.assigns, u.assigns...)
	s.open.ordered = s.open.ordered || u.ordered
	s.open.need = max(s.open.need, u.need)
}

// tag adds a tag.
func (s *splitter) tag(t parser.Token) {
	u := node{line: t.SourceLoc.LineNo, source: "{%" + tagSource(t, t.Args) + "%}"}
	lenient, skip := false, 0
	switch name := t.Name; name {
	case "if", "unless", "elsif", "case", "when":
		lenient = true
	case "for", "tablerow":
		skip = 2 // for NAME in
	case "assign":
		skip = 2 // assign NAME =
	case "capture":
		u.assigns = []string{strings.TrimSpace(t.Args)}
		s.rejectReserved(t, u.assigns[0])
		u.source = strings.Replace(u.source, name, limitedCaptureTag, 1)
	case "endcapture":
		u.source = strings.Replace(u.source, "capture", limitedCaptureTag, 1)
	case iterationTag, limitedCaptureTag:
		s.addError(t.SourceLoc.LineNo, name, "", "undefined tag %q", name)
	case "break", "continue":
		if s.loopDepth() == 0 {
			s.addError(t.SourceLoc.LineNo, name, "", "%s is used outside a loop", name)
		}
		u.ordered = name == "break"
	case "cycle":
		u.ordered = true
	}
	if lenient || skip > 0 {
		e := rewrite(t.Args, t.SourceLoc.LineNo, lenient, skip)
		if isLoop(t.Name) {
			e = rewriteLoop(t.Args, t.SourceLoc.LineNo)
		}
		s.checkExpression(e, t.SourceLoc.LineNo)
		u.source = "{%" + tagSource(t, e.source) + "%}"
		u.paths = s.scope.resolve(e.paths)
		if t.Name == "assign" {
			_, value, _ := strings.Cut(t.Args, "=")
			u.paths = append(u.paths, s.memberPaths(value, e, t.SourceLoc.LineNo)...)
		}
		u.need = e.need
		s.declareVariable(t, e, &u)
		switch {
		case isLoop(t.Name):
			u.source += "{%" + iterationTag + "%}"
		case t.Name == "assign":
			u.source += "{%" + iterationTag + " " + u.assigns[0] + "%}"
		}
	}
	switch {
	case opensBlock(t.Name):
		if s.open == nil {
			s.open = &node{line: t.SourceLoc.LineNo, loopVariable: u.loopVariable}
		}
		s.blocks = append(s.blocks, t.Name)
		s.add(u)
	case strings.HasPrefix(t.Name, "end"):
		s.add(u)
		if n := len(s.blocks); n > 0 {
			if isLoop(s.blocks[n-1]) {
				s.scope.leaveLoop()
			}
			s.blocks = s.blocks[:n-1]
		}
		if len(s.blocks) == 0 && s.open != nil {
			done := *s.open
			s.open = nil
			s.add(done)
		}
	default:
		s.add(u)
	}
}

// declareVariable notes the variable that the tag sets.
func (s *splitter) declareVariable(t parser.Token, e expression, u *node) {
	name, _, _ := strings.Cut(strings.TrimSpace(t.Args), " ")
	name, _, _ = strings.Cut(name, "=")
	switch {
	case isLoop(t.Name):
		element := Path{Line: t.SourceLoc.LineNo}
		if len(u.paths) > 0 && len(e.filters) == 0 {
			element = u.paths[0]
			element.Steps = append(append([]jsonschema.Step(nil), element.Steps...), jsonschema.Step{Index: true})
			u.paths[0].Looped = true
			if plainly := strings.Fields(t.Args); t.Name == "for" && s.open == nil && len(plainly) == 3 && plainly[2] == "items" && element.Root == "items" {
				u.loopVariable = name
			}
		}
		s.scope.enterLoop(name, element)
	case t.Name == "assign":
		u.assigns = []string{name}
	}
	if isLoop(t.Name) || t.Name == "assign" {
		s.rejectReserved(t, name)
	}
	if isBuiltin(name) && !OnlyInDigests(name) && (isLoop(t.Name) || t.Name == "assign") {
		s.addError(t.SourceLoc.LineNo, name, "choose another name", "%s is a built-in variable", name)
	}
}

// rejectReserved refuses a variable with a reserved name.
func (s *splitter) rejectReserved(t parser.Token, name string) {
	if strings.HasPrefix(name, reservedPrefix) && !isBuiltin(name) {
		s.addError(t.SourceLoc.LineNo, name, "choose another name", "names that begin with %s are reserved: %s", reservedPrefix, name)
	}
}

func opensBlock(tag string) bool {
	return strings.Contains(" if unless case for tablerow capture ", " "+tag+" ")
}

func isLoop(tag string) bool { return tag == "for" || tag == "tablerow" }

func (s *splitter) loopDepth() int {
	n := 0
	for _, b := range s.blocks {
		if isLoop(b) {
			n++
		}
	}
	return n
}

// tagSource rebuilds the source between {% and %}.
func tagSource(t parser.Token, args string) string {
	if t.Args == "" {
		return t.Name + strings.Repeat("\n", strings.Count(t.Source, "\n"))
	}
	head, _, _ := strings.Cut(t.Source, t.Name)
	return strings.Repeat("\n", strings.Count(head, "\n")) + t.Name +
		withSpacing(parser.Token{Source: t.Source[len(head)+len(t.Name):], Args: t.Args}, args)
}

// checkExpression refuses unknown filters and variables, and long ranges.
func (s *splitter) checkExpression(e expression, line int) {
	if e.longRange {
		s.addError(line, "", "use numbers for both ends, with a difference of at most "+strconv.Itoa(maxRange), "the range may be too long")
	}
	for _, f := range e.filters {
		if !knownFilter(f) && (f != notifyFilter || s.part.notify == nil) {
			s.addError(line, f, Nearest(f, strings.Fields(FilterNames+LocalizedFilterNames)), "unknown filter %q", f)
		}
	}
	for _, v := range e.localized {
		if message, hint := checkLocalized(v.name, v.after); message != "" {
			s.addError(line, v.name, hint, "%s", message)
		}
	}
	for _, p := range e.paths {
		if hint, ok := s.scope.check(p); !ok {
			s.addError(line, p.Text, hint, "unknown variable %s", p.Text)
		}
	}
}

// memberPaths returns the members of the elements of a list that filters read by name. It
// refuses members that cannot exist.
func (s *splitter) memberPaths(src string, e expression, line int) []Path {
	members := s.scope.memberPaths(src, e, line)
	for _, p := range members {
		if at, names := jsonschema.Missing(nil, builtins[p.Root], p.Steps); at >= 0 {
			s.addError(line, p.Text, Nearest(p.Text, names), "unknown variable %s%s", p.Root, jsonschema.JoinSteps(p.Steps))
		}
	}
	return members
}

// addError notes an error in a line; text is the place in the line that is wrong.
func (s *splitter) addError(line int, text, hint, format string, args ...any) {
	wrong := invalid(line, hint, format, args...)
	s.part.SetPosition(wrong, text)
	s.errors = append(s.errors, wrong)
}
