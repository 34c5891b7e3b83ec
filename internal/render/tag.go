package render

import (
	"strconv"
	"strings"

	"github.com/osteele/liquid/parser"
)

// tag takes one tag into the unit that it belongs to.
func (s *splitter) tag(t parser.Token) {
	u := unit{line: t.SourceLoc.LineNo, source: "{%" + inside(t, t.Args) + "%}"}
	lenient, skip := false, 0
	switch name := t.Name; name {
	case "if", "unless", "elsif", "case", "when":
		lenient = true
	case "for", "tablerow":
		skip = 2 // for NAME in
	case "assign":
		skip = 2 // assign NAME =
	case "capture":
		u.writes = []string{strings.TrimSpace(t.Args)}
		s.refuseOwn(t, u.writes[0])
		u.source = strings.Replace(u.source, name, captureTag, 1)
	case "endcapture":
		u.source = strings.Replace(u.source, "capture", captureTag, 1)
	case turnTag, captureTag:
		s.fail(t.SourceLoc.LineNo, name, "", "undefined tag %q", name)
	case "break", "continue":
		if s.loopDepth() == 0 {
			s.fail(t.SourceLoc.LineNo, name, "", "%s outside of a loop", name)
		}
		u.ordered = name == "break"
	case "cycle":
		u.ordered = true
	}
	if lenient || skip > 0 {
		e := rewrite(t.Args, t.SourceLoc.LineNo, lenient, skip)
		if loops(t.Name) {
			e = rewriteLoop(t.Args, t.SourceLoc.LineNo)
		}
		s.check(e, t.SourceLoc.LineNo)
		u.source = "{%" + inside(t, e.source) + "%}"
		u.paths = s.scope.resolve(e.paths)
		if t.Name == "assign" {
			_, value, _ := strings.Cut(t.Args, "=")
			u.paths = append(u.paths, s.members(value, e, t.SourceLoc.LineNo)...)
		}
		u.speech = e.speech
		s.declare(t, e, &u)
		switch {
		case loops(t.Name):
			u.source += "{%" + turnTag + "%}"
		case t.Name == "assign":
			u.source += "{%" + turnTag + " " + u.writes[0] + "%}"
		}
	}
	switch {
	case opens(t.Name):
		if s.open == nil {
			s.open = &unit{line: t.SourceLoc.LineNo, over: u.over}
		}
		s.blocks = append(s.blocks, t.Name)
		s.add(u)
	case strings.HasPrefix(t.Name, "end"):
		s.add(u)
		if n := len(s.blocks); n > 0 {
			if loops(s.blocks[n-1]) {
				s.scope.leave()
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

// declare notes the variable that the tag brings into being.
func (s *splitter) declare(t parser.Token, e expression, u *unit) {
	name, _, _ := strings.Cut(strings.TrimSpace(t.Args), " ")
	name, _, _ = strings.Cut(name, "=")
	switch {
	case loops(t.Name):
		element := path{line: t.SourceLoc.LineNo}
		if len(u.paths) > 0 && len(e.filters) == 0 {
			element = u.paths[0]
			element.segments = append(append([]segment(nil), element.segments...), segment{index: true})
			u.paths[0].looped = true
			if plainly := strings.Fields(t.Args); t.Name == "for" && s.open == nil && len(plainly) == 3 && plainly[2] == "items" && element.root == "items" {
				u.over = name
			}
		}
		s.scope.enter(name, element)
	case t.Name == "assign":
		u.writes = []string{name}
	}
	if loops(t.Name) || t.Name == "assign" {
		s.refuseOwn(t, name)
	}
	if builtin(name) && !ofDigests(name) && (loops(t.Name) || t.Name == "assign") {
		s.fail(t.SourceLoc.LineNo, name, "choose another name", "%s is the name of a variable that every template has", name)
	}
}

// refuseOwn refuses a variable with a name that is the compiler's.
func (s *splitter) refuseOwn(t parser.Token, name string) {
	if strings.HasPrefix(name, ownPrefix) && !builtin(name) {
		s.fail(t.SourceLoc.LineNo, name, "choose another name", "names that begin with %s are not for templates: %s", ownPrefix, name)
	}
}

func opens(tag string) bool {
	return strings.Contains(" if unless case for tablerow capture ", " "+tag+" ")
}

func loops(tag string) bool { return tag == "for" || tag == "tablerow" }

func (s *splitter) loopDepth() int {
	n := 0
	for _, b := range s.blocks {
		if loops(b) {
			n++
		}
	}
	return n
}

// inside rebuilds the inside of a tag.
func inside(t parser.Token, args string) string {
	if t.Args == "" {
		return t.Name + strings.Repeat("\n", strings.Count(t.Source, "\n"))
	}
	head, _, _ := strings.Cut(t.Source, t.Name)
	return strings.Repeat("\n", strings.Count(head, "\n")) + t.Name +
		around(parser.Token{Source: t.Source[len(head)+len(t.Name):], Args: t.Args}, args)
}

// check refuses filters and variables that do not exist.
func (s *splitter) check(e expression, line int) {
	if e.endless {
		s.fail(line, "", "write the ends as numbers, at most "+strconv.Itoa(maxRange)+" apart", "a range that may be too long")
	}
	for _, f := range e.filters {
		if !knownFilter(f) {
			s.fail(line, f, nearest(f, strings.Fields(filterNames+voicedNames)), "unknown filter %q", f)
		}
	}
	for _, v := range e.voiced {
		if message, hint := checkVoiced(v.name, v.after); message != "" {
			s.fail(line, v.name, hint, "%s", message)
		}
	}
	for _, p := range e.paths {
		if hint, ok := s.scope.knows(p); !ok {
			s.fail(line, p.text, hint, "unknown variable %s", p.text)
		}
	}
}

// members are what filters read by name of the elements of a list. It refuses those
// that cannot exist.
func (s *splitter) members(src string, e expression, line int) []path {
	members := s.scope.read(src, e, line)
	for _, p := range members {
		if at, names := lacking(nil, builtins[p.root], p.segments); at >= 0 {
			s.fail(line, p.text, nearest(p.text, names), "unknown variable %s%s", p.root, joinSegments(p.segments))
		}
	}
	return members
}

// fail notes a mistake in a line, which is about the text.
func (s *splitter) fail(line int, text, hint, format string, args ...any) {
	wrong := invalid(line, hint, format, args...)
	s.part.point(wrong, text)
	s.wrong = append(s.wrong, wrong)
}
