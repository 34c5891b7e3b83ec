package condition

import (
	"encoding/json"
	"maps"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// fataler is the part of a test that a naive evaluation uses.
type fataler interface{ Fatalf(string, ...any) }

// A judge evaluates conditions in the slow and simple way: each as a whole, by cel-go, for one
// subscription and one event. It caches compiled programs.
type judge struct {
	env      *cel.Env
	programs map[string]cel.Program
	vars     map[string]any // of the event that it is asked about
	asked    int            // (condition, event) pairs
}

func newJudge(env *cel.Env) *judge { return &judge{env: env, programs: map[string]cel.Program{}} }

// variables are the names that conditions may use for an event, with the schema s.
func variables(t fataler, event Event, s *lang.SchemaType) map[string]any {
	as := func(raw json.RawMessage, s *lang.SchemaType) any {
		v, err := expr.DecodeData(raw, s)
		if err != nil {
			t.Fatalf("decode %s: %v", raw, err)
		}
		return v
	}
	data := as(event.Data, s)
	vars := map[string]any{}
	if m, ok := data.(map[string]any); ok {
		maps.Copy(vars, m)
	}
	delete(vars, "sub")
	vars["event"], vars[lang.AttributesName] = data, attributesOf(&event.Attributes, func(raw json.RawMessage) any { return as(raw, nil) })
	if len(event.Previous) > 0 {
		vars[lang.PreviousName] = as(event.Previous, s)
	}
	return vars
}

// attributesOf returns the value of ce: only the attributes that the event has.
func attributesOf(a *Attributes, read func(json.RawMessage) any) map[string]any {
	ce := map[string]any{}
	for name, raw := range a.Extensions {
		ce[name] = read(raw)
	}
	for name, text := range map[string]string{"id": a.ID, "source": a.Source, "type": a.Type, "subject": a.Subject} {
		if ce[name] = text; text == "" {
			delete(ce, name)
		}
	}
	if ce["time"] = a.Time; a.Time.IsZero() {
		delete(ce, "time")
	}
	return ce
}

// holds reports whether a condition is true for the event; sub is nil for a filter.
func (j *judge) holds(t fataler, text string, sub map[string]any) bool {
	p := j.programs[text]
	if p == nil {
		checked, issues := lang.Parse(j.env, text, nil)
		if issues.Err() != nil {
			t.Fatalf("oracle: %q: %v", text, issues.Err())
		}
		var err error
		if p, err = j.env.PlanProgram(checked.AST, cel.CostLimit(lang.MaxCost)); err != nil {
			t.Fatalf("oracle: %q: %v", text, err)
		}
		j.programs[text] = p
	}
	if sub != nil {
		j.vars["sub"] = sub
	}
	out, _, err := p.Eval(j.vars)
	j.asked++
	return err == nil && out == types.True
}

// naive evaluates one condition for one event with a new judge.
func naive(t fataler, sc *lang.Scope, text string, event Event, sub map[string]any) bool {
	j := newJudge(sc.Env)
	j.vars = variables(t, event, sc.Event)
	return j.holds(t, text, sub)
}

// readSub returns the value of sub for valid params of a rule.
func readSub(t fataler, params json.RawMessage) (sub map[string]any) {
	if err := json.Unmarshal(params, &sub); err != nil {
		t.Fatalf("params %s: %v", params, err)
	}
	return sub
}
