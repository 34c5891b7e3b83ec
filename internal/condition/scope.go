package condition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
)

// A scope is where a condition lives: the names that it may use.
type scope struct {
	env     *cel.Env
	event   *schemaType
	params  []param // sorted by name; nil in a filter
	inRule  bool
	ruleEnv *cel.Env // with the variable sub
	hasKey  bool     // the topic has a key

	noEvent bool // the members of the data are variables, as those of an audience are
}

// newTopicScope returns the scope of the filters of a topic with a JSON Schema and a key,
// and the names of fields that lead to the key. The error points at /schema or /key.
func newTopicScope(language *cel.Env, schema json.RawMessage, key string) (sc *scope, steps []string, err error) {
	event, err := parseSchema(schema)
	if err != nil {
		return nil, nil, invalid("/schema", "the schema is not JSON: %v", err)
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
		return nil, nil, invalid("/schema", "the schema's fields cannot be declared: %v", err)
	}
	ruleEnv, err := env.Extend(cel.Variable("sub", cel.DynType))
	if err != nil {
		return nil, nil, fmt.Errorf("declare sub: %w", err)
	}
	return &scope{env: env, ruleEnv: ruleEnv, event: event, hasKey: steps != nil}, steps, nil
}

// forRule returns the scope of a rule with params, in the topic whose filters have sc.
func (sc *scope) forRule(params []param) *scope {
	return &scope{env: sc.ruleEnv, event: sc.event, params: params, inRule: true, hasKey: sc.hasKey}
}

// isBare reports whether a name is a field of the event.
func (sc *scope) isBare(name string) bool {
	return !sc.noEvent && sc.event.fields[name] != nil && mayBeBare(name)
}

// bareNames lists the fields that may be written without event before them.
func (sc *scope) bareNames() []string { return bareNames(sc.event) }

func (sc *scope) param(name string) (param, bool) {
	i, ok := slices.BinarySearchFunc(sc.params, name, func(p param, name string) int { return cmp.Compare(p.name, name) })
	if !ok {
		return param{}, false
	}
	return sc.params[i], true
}

func (sc *scope) paramNames() []string {
	names := make([]string, len(sc.params))
	for i, p := range sc.params {
		names[i] = p.name
	}
	return names
}
