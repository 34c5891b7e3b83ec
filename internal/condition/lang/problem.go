package lang

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare"
)

func Invalid(pointer, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// setPosition sets the position of e: CEL counts lines from 1 and columns from 0.
func setPosition(e *fanfare.Error, where common.Location) *fanfare.Error {
	if where != nil && where.Line() > 0 {
		e.Line, e.Column = where.Line(), where.Column()+1
	}
	return e
}

// fromIssues turns the first issue that CEL found in text into an error with Fanfare's wording. a is
// the parsed text.
func fromIssues(pointer, text string, issues *cel.Issues, sc *Scope, a Expression) *fanfare.Error {
	first := issues.Errors()[0]
	message, syntax := strings.CutPrefix(first.Message, "Syntax error: ")
	e := setPosition(Invalid(pointer, "%s", message), first.Location)
	if syntax {
		// The list of all possible tokens does not help the reader.
		e.Message, _, _ = strings.Cut(message, " expecting {")
		e.Message = strings.Replace(e.Message, "'<EOF>'", "end of the expression", 1)
		e.Message = "syntax error: " + e.Message
		e.Hint = syntaxHints[strings.ToLower(offendingToken(message))]
		return e
	}
	if rest, ok := strings.CutPrefix(message, "undeclared reference to '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		if call, start, ok := a.findCall(first.ExprID); ok && call.FunctionName() == name && crossings[name] == 0 {
			sc.unknownFunction(e, name)
			e.Column -= lengthBefore([]rune(text), start, name)
		} else {
			sc.unknownName(e, name)
		}
	} else if strings.Contains(message, "type(") {
		// CEL read a bare name as one of its own, such as a type.
		for _, name := range reservedNames {
			if sc.Event.Fields[name] != nil && strings.Contains(message, "type("+name+")") {
				e.Hint = fmt.Sprintf("write the field as event.%s", name)
			}
		}
	}
	return e
}

// syntaxHints explains CEL syntax that differs from SQL and other languages, by the offending
// token.
var syntaxHints = map[string]string{
	"=":    "write == to test for equality",
	">":    "write != for \"not equal\" and >= for \"greater than or equal\"", // part of <> and =>
	"and":  "write && instead of and",
	"or":   "write || instead of or",
	"not":  "write ! instead of not",
	"like": "write contains_ci(event.field, 'part')",
	"is":   "write has(event.field), or event.field == null",
}

// offendingToken returns the token at which the parser stopped, or "".
func offendingToken(message string) string {
	_, rest, _ := strings.Cut(message, "'")
	text, _, _ := strings.Cut(rest, "'")
	return strings.TrimSpace(text)
}

// unknownName describes an unknown bare name in e.
func (sc *Scope) unknownName(e *fanfare.Error, name string) {
	e.Message = fmt.Sprintf("unknown name %q", name)
	names := append(sc.bareNames(), "event", "contains_ci", "starts_with_ci", GeoWithin, JMESPath, "crosses", "crosses_above", "crosses_below")
	switch best := closestName(name, names); {
	case crossings[name] != 0:
		e.Message = name + " requires two arguments: a field of the event and a level"
		e.Hint = fmt.Sprintf("write %s(event.price, 100)", name)
	case name == "sub":
		e.Hint = "sub contains the params of a rule; a filter has no params"
	case best != "":
		e.Hint = fmt.Sprintf("did you mean %s?", best)
	case len(sc.Event.Fields) == 0:
		e.Hint = fmt.Sprintf("the topic has no schema: write event.%s", name)
	default:
		e.Hint = "valid names are " + firstNames(sc.Event.names())
	}
}

// findCall returns the call with an id and the position of its parenthesis in runes; not ok if
// there is none.
func (p Expression) findCall(id int64) (call celast.CallExpr, start int, ok bool) {
	if p.AST == nil {
		return nil, 0, false
	}
	rewrite(p.Expr(), func(e celast.Expr, one celast.CallExpr) {
		if e.ID() == id {
			call, ok = one, true
		}
	})
	where, _ := p.SourceInfo().GetOffsetRange(id)
	return call, int(where.Start), ok
}

// lengthBefore returns the length of name in runes if it stands directly before the parenthesis,
// else 0.
func lengthBefore(text []rune, parenthesis int, name string) int {
	if n := utf8.RuneCountInString(name); parenthesis >= n && parenthesis <= len(text) && string(text[parenthesis-n:parenthesis]) == name {
		return n
	}
	return 0
}

// unknownFunction describes an unknown function in e.
func (sc *Scope) unknownFunction(e *fanfare.Error, name string) {
	e.Message = fmt.Sprintf("unknown function %q", name)
	best := closestName(name, functionNames)
	switch plain := strings.ToLower(name); {
	case best != "":
		e.Hint = fmt.Sprintf("did you mean %s?", best)
	case strings.HasPrefix(plain, "lower") || strings.HasPrefix(plain, "upper") || strings.HasPrefix(plain, "tolower") || strings.HasPrefix(plain, "toupper"):
		e.Hint = "contains_ci(text, part) and starts_with_ci(text, part) ignore case"
	default:
		e.Hint = "valid names are " + strings.Join(functionNames, ", ")
	}
}

// functionNames are the functions that the hint lists; CEL has more that read parts of a time.
var functionNames = []string{
	"contains", "contains_ci", "startsWith", "starts_with_ci", "endsWith", "matches", "size", "has", "exists", "exists_one", "all", "filter", "map",
	"int", "double", "string", "bool", "timestamp", "duration", "getFullYear", "getMonth", "getDate", "getDayOfWeek", "getHours", "getMinutes",
	GeoWithin, JMESPath, "crosses", "crosses_above", "crosses_below",
}

// UnknownMember describes an unknown field or param in e.
func UnknownMember(e *fanfare.Error, what, name string, known []string) *fanfare.Error {
	e.Message = fmt.Sprintf("unknown %s %q", what, name)
	if best := closestName(name, known); best != "" {
		e.Hint = fmt.Sprintf("did you mean %s?", best)
	} else if len(known) > 0 {
		e.Hint = "valid names are " + firstNames(known)
	}
	return e
}

// firstNames joins the first names of a list.
func firstNames(names []string) string {
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// closestName returns the name that is most similar to given, or "" if none is.
func closestName(given string, names []string) string {
	best, limit := "", max(1, len(given)/3)
	for _, name := range names {
		if d := distance(Fold(given), Fold(name)); d <= limit && d < max(len(given), len(name)) {
			best, limit = name, d-1
		}
	}
	return best
}

// distance counts the bytes to insert, delete, change or swap with their neighbour to turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// Pointer joins the parts of a JSON pointer (RFC 6901).
func Pointer(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1"))
	}
	return b.String()
}
