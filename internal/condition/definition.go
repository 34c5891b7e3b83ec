package condition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// Definition contains those parts of a topic's definition on which its conditions depend.
type Definition struct {
	Key    string          // path of the field that identifies the subject of an event, as a.b; "" for none
	Schema json.RawMessage // JSON Schema of the event's data; nil: conditions may use any field
	Rules  []Rule          // in the topic's order
}

// A Rule is a condition of the topic for subscriptions with their own params.
type Rule struct {
	Name   string
	When   string            // CEL over event and sub
	Params map[string]string // name -> "number", "string", "boolean" or "strings" (a list); all are required
}

func (r *Rule) equal(o *Rule) bool {
	return r.Name == o.Name && r.When == o.When && maps.Equal(r.Params, o.Params)
}

func (d *Definition) equal(o *Definition) bool {
	return d.Key == o.Key && bytes.Equal(d.Schema, o.Schema) && slices.EqualFunc(d.Rules, o.Rules, func(a, b Rule) bool { return a.equal(&b) })
}

// MaxRules is the maximum number of rules of a topic.
const MaxRules = 1024

// A compiledDefinition is a valid Definition. It never changes.
type compiledDefinition struct {
	definition  Definition
	key         *expr.Path // nil: the topic has no key
	filterScope *lang.Scope
	ruleScopes  []*lang.Scope // one for each rule, with its params
	rulePlans   []*plan       // one for each rule
}

// compileDefinition checks def and compiles its rules.
func compileDefinition(language *cel.Env, def Definition) (*compiledDefinition, error) {
	filterScope, keySteps, err := lang.NewTopicScope(language, def.Schema, def.Key)
	if err != nil {
		return nil, err
	}
	if len(def.Rules) > MaxRules {
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/rules", Message: fmt.Sprintf("a topic can have at most %d rules", MaxRules)}
	}
	c := &compiledDefinition{definition: def, filterScope: filterScope}
	if keySteps != nil {
		c.key = &expr.Path{Source: expr.Source{Steps: keySteps}}
	}
	seen := map[string]bool{}
	for i, rule := range def.Rules {
		place := lang.Pointer("rules", strconv.Itoa(i))
		switch {
		case rule.Name == "":
			return nil, lang.Invalid(place+"/name", "the rule has no name")
		case seen[rule.Name]:
			return nil, lang.Invalid(place+"/name", "two rules have the name %q", rule.Name)
		}
		seen[rule.Name] = true
		params, err := lang.ReadParamTypes(place, rule.Params)
		if err != nil {
			return nil, err
		}
		sc := filterScope.ForRule(params)
		e, err := sc.Compile(place+"/when", rule.When)
		if err != nil {
			return nil, err
		}
		p, err := newPlan(&expr.Builder{Scope: sc, Ast: e})
		if err != nil {
			return nil, lang.Invalid(place+"/when", "%v", err)
		}
		c.ruleScopes, c.rulePlans = append(c.ruleScopes, sc), append(c.rulePlans, p)
	}
	return c, nil
}

// ruleNumber returns the position of a rule in the definition, or -1.
func (c *compiledDefinition) ruleNumber(name string) int {
	return slices.IndexFunc(c.definition.Rules, func(r Rule) bool { return r.Name == name })
}
