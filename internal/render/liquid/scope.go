package liquid

import (
	"maps"
	"slices"
	"strings"

	"github.com/osteele/liquid/parser"

	"fanfare.dev/fanfare/internal/render/jsonschema"
)

// builtins describes the built-in variables by a schema. Parts that are open (true) belong to
// the author, as the members of attributes, or are checked against a schema of the topic.
var builtins = func() map[string]any {
	text, whole, open := map[string]any{"type": "string"}, map[string]any{"type": "integer"}, true
	object := func(of any, names ...string) map[string]any {
		properties := map[string]any{}
		for _, name := range names {
			properties[name] = of
		}
		return map[string]any{"type": "object", "properties": properties}
	}
	with := func(object map[string]any, more map[string]any) map[string]any {
		maps.Copy(object["properties"].(map[string]any), more)
		return object
	}
	list := func(of any) map[string]any { return map[string]any{"type": "array", "items": of} }
	meta := with(object(text, "id", "source", "type", "subject", "time", "topic", "service"), map[string]any{"extensions": open})
	subscription := with(object(text, "id", "rule", "title", "description"), map[string]any{"params": open, "data": open})
	return map[string]any{
		"event": open, "sub": open, "formatted": open, FieldsVariable: open,
		"meta":            meta,
		"subscriber":      with(object(text, "id", "address", "locale", "time_zone"), map[string]any{"attributes": open}),
		"subscription":    subscription,
		"subscriptions":   list(subscription),
		"unsubscribe_url": text, "preferences_url": text,
		"items": list(map[string]any{"type": "object", "properties": map[string]any{"event": open, "meta": meta, "subscription": subscription, "subscriptions": list(subscription)}}),
		"count": whole, "more": whole,
		"digest": object(text, "due", "cadence", "time_zone", "service"),
	}
}()

// forloopFields are the members of forloop.
var forloopFields = []string{"first", "index", "index0", "last", "length", "rindex", "rindex0"}

func isBuiltin(name string) bool {
	_, ok := builtins[name]
	return ok
}

// OnlyInDigests reports whether only digests have the variable. Other templates may assign a
// variable of this name.
func OnlyInDigests(name string) bool {
	return name == "items" || name == "count" || name == "more" || name == "digest"
}

// A scope knows the variables of a template and where their values come from.
type scope struct {
	assigned map[string]Path // by assign and capture, anywhere; an empty root is unknown
	loops    []loop          // open loops, outermost first
}

type loop struct {
	name    string
	element Path // the element that the variable holds; an empty root is unknown
}

// newScope finds the variables that the template assigns. It also returns the variables that
// only capture assigns.
func newScope(tokens []parser.Token) (scope, map[string]bool) {
	s := scope{assigned: map[string]Path{}}
	captured := map[string]bool{}
	for _, t := range tokens {
		if t.Type != parser.TagTokenType {
			continue
		}
		switch t.Name {
		case "for", "tablerow":
			name, _, _ := strings.Cut(strings.TrimSpace(t.Args), " ")
			s.enterLoop(name, s.element(rewrite(t.Args, t.SourceLoc.LineNo, false, 2)))
		case "endfor", "endtablerow":
			s.leaveLoop()
		case "capture":
			name := strings.TrimSpace(t.Args)
			if _, again := s.assigned[name]; !again {
				captured[name] = true
			}
			s.assigned[name] = Path{}
		case "assign":
			name, value, _ := strings.Cut(t.Args, "=")
			name = strings.TrimSpace(name)
			delete(captured, name)
			_, again := s.assigned[name]
			s.assigned[name] = Path{}
			if from, ok := s.source(value, rewrite(value, t.SourceLoc.LineNo, false, 0)); ok && !again {
				s.assigned[name] = from
			}
		}
	}
	s.loops = nil
	return s, captured
}

// selectingFilters take elements out of a list and leave them unchanged.
const selectingFilters = " compact first last reverse sort sort_natural uniq where "

// source returns the path that an expression stands for: a variable, or what selectingFilters
// take out of a list.
func (s *scope) source(src string, e expression) (from Path, ok bool) {
	if !strings.HasPrefix(strings.TrimSpace(src), e.first()) {
		return Path{}, false
	}
	from = s.resolve(e.paths[:1])[0]
	if e.single || !isBuiltin(from.Root) {
		return from, isBuiltin(from.Root)
	}
	rest := tokenize(strings.TrimSpace(src)[len(e.paths[0].Text):])
	if len(e.filters) == 0 || len(rest) == 0 || rest[0].text != "|" {
		return Path{}, false
	}
	for i, filter := range e.filters {
		switch {
		case !strings.Contains(selectingFilters, " "+filter+" "):
			return Path{}, false
		case filter == "first" || filter == "last":
			if i+1 < len(e.filters) {
				return Path{}, false
			}
			from.Steps = append(from.Steps, jsonschema.Step{Index: true})
		}
	}
	return from, true
}

// memberPaths returns the members of a list's elements that filters read by name.
func (s *scope) memberPaths(src string, e expression, line int) (members []Path) {
	src = strings.TrimSpace(src)
	if len(e.filters) == 0 || !strings.HasPrefix(src, e.first()) {
		return nil
	}
	of := s.resolve(e.paths[:1])[0]
	tokens := tokenize(src[len(e.paths[0].Text):])
	for i := 0; i+1 < len(tokens) && tokens[i].text == "|" && tokens[i].kind == other; {
		filter := tokens[i+1]
		i += 2
		if strings.Contains(" map where sort sort_natural sum ", " "+filter.text+" ") && filter.kind == keyword && i < len(tokens) {
			if name := bracket(tokens[i : i+1]).Name; nameOnly(name) {
				member := Path{Root: of.Root, Text: name, Line: line, Assigned: of.Assigned}
				member.Steps = append(append(member.Steps, of.Steps...), jsonschema.Step{Index: true}, jsonschema.Step{Name: name})
				members = append(members, member)
			}
		}
		if !strings.Contains(selectingFilters, " "+filter.text+" ") || filter.text == "first" || filter.text == "last" {
			break
		}
		for i < len(tokens) && (tokens[i].text != "|" || tokens[i].kind != other) {
			i++
		}
	}
	return members
}

// nameOnly reports whether a property of a filter is one name.
func nameOnly(name string) bool {
	return name != "" && nameStart(name[0]) && nameEnd(name, 0) == len(name)
}

// element returns the path of the elements that a loop goes through.
func (s *scope) element(e expression) Path {
	if len(e.paths) == 0 || len(e.filters) > 0 {
		return Path{}
	}
	of := s.resolve(e.paths[:1])[0]
	if of.Root != "" {
		of.Steps = append(of.Steps, jsonschema.Step{Index: true})
	}
	return of
}

func (s *scope) enterLoop(name string, element Path) { s.loops = append(s.loops, loop{name, element}) }
func (s *scope) leaveLoop()                          { s.loops = s.loops[:max(0, len(s.loops)-1)] }

// resolveName returns the path that a variable stands for at the current position.
func (s *scope) resolveName(name string) (from Path, assigned, ok bool) {
	for _, l := range slices.Backward(s.loops) {
		if l.name == name {
			return l.element, l.element.Assigned, true
		}
		if name == "forloop" {
			return Path{}, false, true
		}
	}
	if from, ok := s.assigned[name]; ok {
		return from, true, true
	}
	return Path{Root: name}, false, isBuiltin(name)
}

// resolve traces paths back to built-in variables.
func (s *scope) resolve(paths []Path) []Path {
	resolved := make([]Path, len(paths))
	for i, p := range paths {
		from, assigned, _ := s.resolveName(p.Root)
		resolved[i] = Path{Root: from.Root, Text: p.Text, Line: p.Line, Assigned: assigned}
		resolved[i].Steps = append(append([]jsonschema.Step(nil), from.Steps...), p.Steps...)
	}
	return resolved
}

// check reports whether the path can exist, with a hint if it cannot.
func (s *scope) check(p Path) (hint string, ok bool) {
	if _, _, ok := s.resolveName(p.Root); !ok {
		names := []string{"count", "digest", "event", "formatted", "items", "meta", "more", "preferences_url", "sub", "subscriber", "subscription", "subscriptions", "unsubscribe_url"}
		for name := range s.assigned {
			names = append(names, name)
		}
		slices.Sort(names)
		return Nearest(p.Root, names), false
	}
	q := s.resolve([]Path{p})[0]
	if p.Root == "forloop" && q.Root == "" && len(p.Steps) > 0 {
		name := p.Steps[0].Name
		return Nearest(name, forloopFields), name == "" || slices.Contains(forloopFields, name)
	}
	if at, names := jsonschema.Missing(nil, builtins[q.Root], q.Steps); at >= 0 {
		return Nearest(q.Steps[at].Name, names), false
	}
	return "", true
}

// Nearest returns a hint with the name that was probably meant.
func Nearest(name string, names []string) string {
	best, least := "", len(name)/3
	for _, n := range names {
		if d := distance(name, n); d <= least {
			best, least = n, d-1
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return ""
}

// distance is the Levenshtein distance in which a transposition counts once.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
