package format

import (
	"slices"
	"strings"

	"github.com/osteele/liquid/parser"
)

// builtins are the variables that every template has, with their fields where
// those are fixed.
func builtins(name string) (fields []string, ok bool) {
	switch name {
	case "event", "sub", "unsubscribe_url", "preferences_url", "count", "more", fieldsVariable:
		return nil, true
	case "items":
		return []string{"event", "meta", "subscription", "subscriptions"}, true
	case "digest":
		return []string{"due", "cadence", "time_zone", "service"}, true
	case "meta":
		return []string{"id", "source", "type", "subject", "time", "topic", "service", "extensions"}, true
	case "subscriber":
		return []string{"id", "address", "locale", "time_zone", "attributes"}, true
	case "subscription", "subscriptions":
		return []string{"id", "rule", "params", "data"}, true
	}
	return nil, false
}

func builtin(name string) bool {
	_, ok := builtins(name)
	return ok
}

// ofDigests reports whether only messages about several events have the variable.
// A template may use its name for one of its own.
func ofDigests(name string) bool {
	return name == "items" || name == "count" || name == "more" || name == "digest"
}

// A scope knows the variables of a template and where their values come from.
type scope struct {
	assigned map[string]path // by assign and capture, anywhere; an empty root is opaque
	loops    []loop          // those that are open, outermost first
}

type loop struct {
	name    string
	element path // what the variable stands for; an empty root is opaque
}

// newScope finds the variables that the template makes itself. It also returns
// those that only capture makes.
func newScope(tokens []parser.Token) (scope, map[string]bool) {
	s := scope{assigned: map[string]path{}}
	captured := map[string]bool{}
	for _, t := range tokens {
		if t.Type != parser.TagTokenType {
			continue
		}
		switch t.Name {
		case "capture":
			name := strings.TrimSpace(t.Args)
			if _, again := s.assigned[name]; !again {
				captured[name] = true
			}
			s.assigned[name] = path{}
		case "assign":
			name, value, _ := strings.Cut(t.Args, "=")
			name = strings.TrimSpace(name)
			delete(captured, name)
			_, again := s.assigned[name]
			s.assigned[name] = path{}
			if e := rewrite(value, t.SourceLoc.LineNo, false, 0); e.single && !again && builtin(e.paths[0].root) {
				s.assigned[name] = e.paths[0]
			}
		}
	}
	return s, captured
}

func (s *scope) enter(name string, element path) { s.loops = append(s.loops, loop{name, element}) }
func (s *scope) leave()                          { s.loops = s.loops[:max(0, len(s.loops)-1)] }

// origin finds what the variable stands for where the template now is.
func (s *scope) origin(name string) (from path, assigned, ok bool) {
	for _, l := range slices.Backward(s.loops) {
		if l.name == name {
			return l.element, l.element.assigned, true
		}
		if name == "forloop" {
			return path{}, false, true
		}
	}
	if from, ok := s.assigned[name]; ok {
		return from, true, true
	}
	return path{root: name}, false, builtin(name)
}

// resolve traces paths back to the variables that every template has.
func (s *scope) resolve(paths []path) []path {
	resolved := make([]path, len(paths))
	for i, p := range paths {
		from, assigned, _ := s.origin(p.root)
		resolved[i] = path{root: from.root, text: p.text, line: p.line, assigned: assigned}
		resolved[i].segments = append(append([]segment(nil), from.segments...), p.segments...)
	}
	return resolved
}

// knows reports whether the path can exist, with a hint where it cannot.
func (s *scope) knows(p path) (hint string, ok bool) {
	if _, _, ok := s.origin(p.root); !ok {
		names := []string{"count", "digest", "event", "items", "meta", "more", "preferences_url", "sub", "subscriber", "subscription", "subscriptions", "unsubscribe_url"}
		for name := range s.assigned {
			names = append(names, name)
		}
		slices.Sort(names)
		return nearest(p.root, names), false
	}
	q := s.resolve([]path{p})[0]
	fields, _ := builtins(q.root)
	segments := q.segments
	if q.root == "items" || q.root == "subscriptions" {
		if len(segments) > 0 && (segments[0].index || segments[0].name == "first" || segments[0].name == "last") {
			segments = segments[1:]
		} else {
			fields = []string{"size"}
		}
	}
	if q.root == "items" && len(segments) > 1 && (segments[0].name == "meta" || segments[0].name == "subscription") {
		fields, _ = builtins(segments[0].name)
		segments = segments[1:]
	}
	if len(fields) == 0 || len(segments) == 0 || segments[0].name == "" || slices.Contains(fields, segments[0].name) {
		return "", true
	}
	return nearest(segments[0].name, fields), false
}

// nearest hints at the name that was probably meant.
func nearest(name string, names []string) string {
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

// distance is the Levenshtein distance with transpositions counted once.
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
