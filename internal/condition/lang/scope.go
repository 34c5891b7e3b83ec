package lang

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"fanfare.dev/fanfare"
)

// Compile parses and checks text: it must be CEL, use only known names, and be true or false. where
// is the JSON pointer to text for errors.
func (sc *Scope) Compile(where, text string) (a Expression, err error) {
	switch {
	case len(text) > MaxTextBytes:
		return a, &fanfare.Error{Code: fanfare.TooLarge, Pointer: where,
			Message: fmt.Sprintf("the expression has %d bytes; at most %d are allowed", len(text), MaxTextBytes)}
	case !utf8.ValidString(text):
		return a, Invalid(where, "the expression is not valid UTF-8")
	case strings.IndexByte(text, 0) >= 0:
		e := Invalid(where, "the expression contains a zero byte")
		before := text[:strings.IndexByte(text, 0)]
		e.Line, e.Column = 1+strings.Count(before, "\n"), len(before)-strings.LastIndexByte(before, '\n')
		return a, e
	case strings.TrimSpace(text) == "":
		return a, Invalid(where, "the expression is empty")
	}
	a, issues := Parse(sc.Env, text, sc.isBare)
	if issues.Err() != nil {
		return a, fromIssues(where, text, issues, sc, a)
	}
	result, fault := sc.check(where, a)
	if fault != nil {
		return a, fault
	}
	if result != KindAny && result != KindBool {
		e := Invalid(where, "the expression must be true or false, not %s", result)
		e.Line, e.Column = 1, 1
		e.Hint = "write a comparison, for example event.price > 10"
		return a, e
	}
	return a, nil
}

// kindOfType returns the kind of a type that CEL's checker inferred.
func kindOfType(t *types.Type) Kind {
	if t == nil {
		return KindAny
	}
	switch t.Kind() {
	case types.BoolKind:
		return KindBool
	case types.IntKind:
		return KindInt
	case types.DoubleKind:
		return KindDouble
	case types.StringKind:
		return KindString
	case types.ListKind:
		return KindList
	case types.MapKind:
		return KindMap
	case types.NullTypeKind:
		return KindNull
	case types.TimestampKind:
		return kindTime
	case types.DurationKind:
		return kindDuration
	}
	return KindAny
}

// A Scope contains the names that a condition may use.
type Scope struct {
	Env     *cel.Env
	Event   *SchemaType
	Params  []Param // sorted by name; nil for a filter
	InRule  bool
	ruleEnv *cel.Env // env with the variable sub
	hasKey  bool     // the topic has a key

	NoEvent bool // the members of Event are variables, as in an audience filter
}

// NewTopicScope returns the scope of the filters of a topic with a JSON Schema and a key, and the
// steps to the key field. The error points at /schema or /key.
func NewTopicScope(language *cel.Env, schema json.RawMessage, key string) (sc *Scope, steps []string, err error) {
	event, err := ParseSchema(schema)
	if err != nil {
		return nil, nil, Invalid("/schema", "the schema is not valid JSON: %v", err)
	}
	if steps, err = parseKey(key, event); err != nil {
		return nil, nil, err
	}
	var names []cel.EnvOption
	for _, name := range bareNames(event) {
		names = append(names, cel.Variable(name, cel.DynType))
	}
	env, err := language.Extend(names...)
	if err != nil {
		return nil, nil, Invalid("/schema", "the schema's fields cannot be declared: %v", err)
	}
	ruleEnv, err := env.Extend(cel.Variable("sub", cel.DynType))
	if err != nil {
		return nil, nil, fmt.Errorf("declare sub: %w", err)
	}
	return &Scope{Env: env, ruleEnv: ruleEnv, Event: event, hasKey: steps != nil}, steps, nil
}

// ForRule returns the scope of a rule with params in the same topic.
func (sc *Scope) ForRule(params []Param) *Scope {
	return &Scope{Env: sc.ruleEnv, Event: sc.Event, Params: params, InRule: true, hasKey: sc.hasKey}
}

// isBare reports whether a name is a field of the event.
func (sc *Scope) isBare(name string) bool {
	return !sc.NoEvent && sc.Event.Fields[name] != nil && canBeBare(name)
}

// bareNames lists the fields that may be written without event before them.
func (sc *Scope) bareNames() []string { return bareNames(sc.Event) }

func (sc *Scope) Param(name string) (Param, bool) {
	i, ok := slices.BinarySearchFunc(sc.Params, name, func(p Param, name string) int { return cmp.Compare(p.Name, name) })
	if !ok {
		return Param{}, false
	}
	return sc.Params[i], true
}

func (sc *Scope) paramNames() []string {
	names := make([]string, len(sc.Params))
	for i, p := range sc.Params {
		names[i] = p.Name
	}
	return names
}
