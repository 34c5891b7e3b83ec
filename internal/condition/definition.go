package condition

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"

	"fanfare.dev/fanfare"
)

// Definition is what a topic says about its conditions.
type Definition struct {
	Key    string          // the field of the data that tells whose event it is, as a.b; "" for none
	Schema json.RawMessage // JSON Schema of the event's data; nil: any field may be named
	Rules  []Rule          // in the topic's order
}

// A Rule is a condition of the topic that subscriptions take with their own params.
type Rule struct {
	Name   string
	When   string            // CEL over event and sub
	Params map[string]string // name -> "number", "string", "boolean" or "strings", a list; all are required
}

func (r *Rule) equal(o *Rule) bool {
	return r.Name == o.Name && r.When == o.When && maps.Equal(r.Params, o.Params)
}

func (d *Definition) equal(o *Definition) bool {
	return d.Key == o.Key && bytes.Equal(d.Schema, o.Schema) && slices.EqualFunc(d.Rules, o.Rules, func(a, b Rule) bool { return a.equal(&b) })
}

// MaxRules is how many rules a topic may have.
const MaxRules = 1024

// A compiledTopic is a Definition that was found good. It never changes.
type compiledDefinition struct {
	definition  Definition
	key         *path // nil: the topic has none
	filterScope *scope
	ruleScopes  []*scope // one for each rule: the same fields, and its params
	rulePlans   []*plan  // one for each rule
}

// A scope is where a condition lives: the names that it may use.
type scope struct {
	env    *cel.Env
	event  *schemaType
	params []param // sorted by name; nil in a filter
	inRule bool
	hasKey bool // the topic has a key

	noEvent bool // the members of the data are variables, as those of an audience are
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

// compileDefinition checks def and compiles its rules.
func compileDefinition(language *cel.Env, def Definition) (*compiledDefinition, error) {
	event, err := parseSchema(def.Schema)
	if err != nil {
		return nil, invalid("/schema", "the schema is not JSON: %v", err)
	}
	key, err := parseKey(def.Key, event)
	if err != nil {
		return nil, err
	}
	if len(def.Rules) > MaxRules {
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/rules", Message: fmt.Sprintf("more than %d rules", MaxRules)}
	}
	var names []cel.EnvOption
	for _, name := range bareNames(event) {
		names = append(names, cel.Variable(name, cel.DynType))
	}
	env, err := language.Extend(names...)
	if err != nil {
		return nil, invalid("/schema", "the schema's fields cannot be declared: %v", err)
	}
	ruleEnv, err := env.Extend(cel.Variable("sub", cel.DynType))
	if err != nil {
		return nil, fmt.Errorf("declare sub: %w", err)
	}
	keyed := key != nil
	c := &compiledDefinition{definition: def, key: key, filterScope: &scope{env: env, event: event, hasKey: keyed}}
	seen := map[string]bool{}
	for i, rule := range def.Rules {
		place := pointer("rules", strconv.Itoa(i))
		switch {
		case rule.Name == "":
			return nil, invalid(place+"/name", "the rule has no name")
		case seen[rule.Name]:
			return nil, invalid(place+"/name", "a second rule is named %q", rule.Name)
		}
		seen[rule.Name] = true
		params, err := readParamTypes(place, rule.Params)
		if err != nil {
			return nil, err
		}
		sc := &scope{env: ruleEnv, event: event, params: params, inRule: true, hasKey: keyed}
		e, err := sc.compile(place+"/when", rule.When)
		if err != nil {
			return nil, err
		}
		p, err := newPlan(&builder{scope: sc, ast: e})
		if err != nil {
			return nil, invalid(place+"/when", "%v", err)
		}
		c.ruleScopes, c.rulePlans = append(c.ruleScopes, sc), append(c.rulePlans, p)
	}
	return c, nil
}

// ruleNumber returns the place of the rule in the topic's order, or -1.
func (c *compiledDefinition) ruleNumber(name string) int {
	return slices.IndexFunc(c.definition.Rules, func(r Rule) bool { return r.Name == name })
}
