package render

import (
	"strings"
	"unicode"

	"github.com/osteele/liquid/parser"

	"fanfare.dev/fanfare"
)

// A unit is a top-level piece of a template: a run of text, an output, a tag, or
// a block with all that it holds.
type unit struct {
	source string // rewritten Liquid
	line   int
	paths  []path   // what it reads
	writes []string // variables that it leaves behind
	speech speech

	over    string // the unit is a loop over all items, with this name for each
	ordered bool   // a turn of a loop in it depends on those before

	single   *path // the unit is an output of this path
	raw      bool  // ... through the filter raw
	fallback any   // ... through the filter default with this literal, or nil
}

// A splitter turns the source of a part into units.
type splitter struct {
	part     *part
	mode     mode
	units    []unit
	open     *unit    // the top-level block under construction
	blocks   []string // names of the blocks that are open
	captured map[string]bool
	scope    scope
	wrong    []*fanfare.Error
}

// split scans source, which Liquid has accepted, into units.
func (s *splitter) split(source string) {
	tokens := parser.Scan(source, parser.SourceLoc{Pathname: "template", LineNo: 1}, nil)
	trim(tokens)
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

// trim does the work of {{-, -}}, {%- and -%}: it takes the white space off the
// text beside them, and leaves as many line ends as keep the line numbers.
func trim(tokens []parser.Token) {
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
			s.fail(t.SourceLoc.LineNo+strings.Count(t.Source[:i], "\n"), open, "close it, or write {% raw %} around it", "%s is not closed", open)
		}
	}
	text := s.show(t.Source, t.SourceLoc.LineNo)
	if braces := len(text) - len(strings.TrimRight(text, "{")); braces > 0 {
		// What follows may begin with another brace.
		text = text[:len(text)-braces] + `{{ "` + text[len(text)-braces:] + `" }}`
	}
	if t.Name == "trimmed" && t.Args != "" {
		text += "{%comment%}" + t.Args + "{%endcomment%}"
	}
	s.add(unit{source: text, line: t.SourceLoc.LineNo})
}

func (s *splitter) output(t parser.Token) {
	e := rewrite(t.Args, t.SourceLoc.LineNo, false, 0)
	s.check(e, t.SourceLoc.LineNo)
	source := e.source
	if len(e.paths) > 0 && len(e.paths[0].segments) == 0 && e.single && s.captured[e.paths[0].root] {
		source += " | raw" // what capture holds was escaped when it was captured
	}
	u := unit{line: t.SourceLoc.LineNo, paths: append(s.scope.resolve(e.paths), s.members(t.Args, e, t.SourceLoc.LineNo)...), speech: e.speech}
	u.source = "{{" + around(t, "("+source+") | "+outFilter) + "}}"
	u.single, u.raw, u.fallback = simple(e, t.Args, u.paths)
	s.add(u)
}

// simple recognises the outputs that need no Liquid: a path alone, through the
// filter raw, or through default with a literal.
func simple(e expression, src string, paths []path) (single *path, raw bool, fallback any) {
	if len(e.paths) != 1 || len(e.filters) > 1 {
		return nil, false, nil
	}
	if e.single {
		return &paths[0], false, nil
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(src), e.paths[0].text)
	tokens := lex(rest)
	switch {
	case !ok || len(tokens) < 2 || tokens[0].text != "|":
	case len(tokens) == 2 && tokens[1].text == "raw":
		return &paths[0], true, nil
	case len(tokens) == 3 && tokens[1].kind == keyword && tokens[1].text == "default" && tokens[2].kind == literal:
		text := tokens[2].text
		if text[0] != '"' && text[0] != '\'' {
			return &paths[0], false, number(text)
		}
		if len(text) >= 2 && !strings.Contains(text, `\`) {
			return &paths[0], false, text[1 : len(text)-1]
		}
	}
	return nil, false, nil
}

// around puts args where the token had its own, with the same line ends.
func around(t parser.Token, args string) string {
	i := strings.Index(t.Source, t.Args)
	return strings.Repeat("\n", strings.Count(t.Source[:i], "\n")) + " " + args + " " +
		strings.Repeat("\n", strings.Count(t.Source[i+len(t.Args):], "\n"))
}

// verbatim copies a raw block and drops a comment. It returns the index of the
// closing token.
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
		source = "{%raw%}" + s.show(body.String(), tokens[from].SourceLoc.LineNo) + "{%endraw%}"
	}
	s.add(unit{source: source, line: tokens[from].SourceLoc.LineNo})
	return i
}

// add appends a finished unit, or what is a part of the open block to it.
func (s *splitter) add(u unit) {
	if s.open == nil {
		s.units = append(s.units, u)
		return
	}
	s.open.source += u.source
	s.open.paths = append(s.open.paths, u.paths...)
	s.open.writes = append(s.open.writes, u.writes...)
	s.open.ordered = s.open.ordered || u.ordered
	s.open.speech = max(s.open.speech, u.speech)
}
