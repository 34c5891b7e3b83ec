package condition

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"

	"fanfare.dev/fanfare"
)

// compile parses and checks text: it is CEL, names only what there can be, and
// may be true or false. where is the JSON pointer of text for errors.
func (sc *scope) compile(where, text string) (a expression, err error) {
	switch {
	case len(text) > MaxTextBytes:
		return a, &fanfare.Error{Code: fanfare.TooLarge, Pointer: where,
			Message: fmt.Sprintf("the expression has %d bytes, more than %d", len(text), MaxTextBytes)}
	case !utf8.ValidString(text):
		return a, invalid(where, "the expression is not valid UTF-8")
	case strings.IndexByte(text, 0) >= 0:
		e := invalid(where, "the expression has a zero byte in it")
		before := text[:strings.IndexByte(text, 0)]
		e.Line, e.Column = 1+strings.Count(before, "\n"), len(before)-strings.LastIndexByte(before, '\n')
		return a, e
	case strings.TrimSpace(text) == "":
		return a, invalid(where, "the expression is empty")
	}
	a, issues := parse(sc.env, text, sc.isBare)
	if issues.Err() != nil {
		return a, fromIssues(where, text, issues, sc, a)
	}
	result, fault := sc.check(where, a)
	if fault != nil {
		return a, fault
	}
	if result != kindAny && result != kindBool {
		e := invalid(where, "the expression is %s, not true or false", result)
		e.Line, e.Column = 1, 1
		e.Hint = "compare it with something"
		return a, e
	}
	return a, nil
}

// kindOfType is the kind of a type that CEL's checker found.
func kindOfType(t *types.Type) kind {
	if t == nil {
		return kindAny
	}
	switch t.Kind() {
	case types.BoolKind:
		return kindBool
	case types.IntKind:
		return kindInt
	case types.DoubleKind:
		return kindDouble
	case types.StringKind:
		return kindString
	case types.ListKind:
		return kindList
	case types.MapKind:
		return kindMap
	case types.NullTypeKind:
		return kindNull
	case types.TimestampKind:
		return kindTime
	case types.DurationKind:
		return kindDuration
	}
	return kindAny
}
