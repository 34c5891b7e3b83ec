package condition

import (
	"fmt"
	"maps"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// define replaces the definition of the topic with c. It recompiles the filters of subscriptions
// and matches rules by name. If one of them is invalid in c, nothing changes.
func (t *topic) define(c *compiledDefinition) error {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	old := t.compiled.Load()
	if old != nil && old.definition.equal(&c.definition) {
		return nil
	}
	t.costKnown = false
	if err := t.checkRules(c); err != nil {
		return err
	}
	fresh, terms, err := t.recompile(c)
	if err != nil {
		return err
	}
	t.filters.insertIntoPlans(terms, t.indexerFor(&t.filters.pages))
	for i, tb := range t.filters.shapes {
		ix := t.indexerFor(&t.filters.pages)
		tb.each(func(row uint32) { fresh[i].plan.insert(ix, row) })
	}
	rules := t.replan(c)

	t.mu.Lock()
	defer t.mu.Unlock()
	for i, tb := range t.filters.shapes {
		t.paths.Unlink(tb.plan.paths)
		tb.plan = fresh[i].plan
		t.paths.Link(tb.plan.paths)
	}
	t.filters.replaceConjunctPlans(terms, &t.paths)
	for _, tb := range t.rules {
		t.paths.Unlink(tb.plan.paths)
	}
	t.memoCount = 0
	for i, tb := range rules {
		tb.ruleNumber, tb.params, tb.plan = int16(i), c.ruleScopes[i].Params, c.rulePlans[i]
		t.paths.Link(tb.plan.paths)
		for j := range tb.plan.residuals {
			if tb.plan.residuals[j].column >= 0 {
				tb.plan.residuals[j].memo = t.memoCount
				t.memoCount++
			}
		}
	}
	t.rules = rules
	t.compiled.Store(c)
	return nil
}

// checkDefine returns the error that define would return.
func (t *topic) checkDefine(c *compiledDefinition) error {
	t.changeMu.Lock()
	defer t.changeMu.Unlock()
	if err := t.checkRules(c); err != nil {
		return err
	}
	_, _, err := t.recompile(c)
	return err
}

// checkRules refuses to remove a rule that has subscriptions, or to change its params.
func (t *topic) checkRules(c *compiledDefinition) error {
	for _, tb := range t.rules {
		if tb.rowCount == 0 {
			continue
		}
		number := c.ruleNumber(tb.name)
		e := &fanfare.Error{Code: fanfare.Conflict, Pointer: "/rules", Hint: "keep the rule, or delete these subscriptions first"}
		if number < 0 {
			e.Message = fmt.Sprintf("%s rule %q, which the new definition removes", subscriptions(tb.rowCount), tb.name)
			return e
		}
		was := t.compiled.Load().definition.Rules[tb.ruleNumber].Params
		if !maps.Equal(was, c.definition.Rules[number].Params) {
			e.Pointer = lang.Pointer("rules", fmt.Sprint(number), "params")
			e.Message = fmt.Sprintf("%s rule %q, whose params the new definition changes", subscriptions(tb.rowCount), tb.name)
			e.Hint = "keep the rule and add the changed version under a new name, or delete these subscriptions first"
			return e
		}
	}
	return nil
}

func subscriptions(n int) string {
	if n == 1 {
		return "1 subscription uses"
	}
	return fmt.Sprintf("%d subscriptions use", n)
}

// recompile compiles the shapes of filters and of conjuncts for c.
func (t *topic) recompile(c *compiledDefinition) (forms, terms []*filterShape, err error) {
	forms, err = t.recompileAll(c, t.filters.shapes, compileFilterShape)
	if err == nil {
		terms, err = t.recompileAll(c, t.filters.conjunctShapes.list, compileConjunctShape)
	}
	return forms, terms, err
}

func (t *topic) recompileAll(c *compiledDefinition, rules []*table, compile shapeCompiler) (fresh []*filterShape, err error) {
	fresh = make([]*filterShape, len(rules))
	for i, tb := range rules {
		if fresh[i], err = t.recompileOne(c, tb, compile); err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// recompileOne compiles the shape of a table for c.
func (t *topic) recompileOne(c *compiledDefinition, tb *table, compile shapeCompiler) (*filterShape, error) {
	tf, _ := lang.Tokenize(tb.name, nil)
	shape, err := compile(c.filterScope, tb.key, tb.name, &tf, tb.isParam)
	if err != nil {
		fl := t.filters.anyFilterOf(tb)
		return nil, &fanfare.Error{Code: fanfare.Conflict, Pointer: "/schema",
			Message: fmt.Sprintf("%s the filter %q, which the new schema does not allow: %v", subscriptions(int(fl.count)), fl.text, err),
			Hint:    "keep the field in the schema, or delete these subscriptions first"}
	}
	return shape, nil
}

// replan inserts the rows of the rules that stay into the plans of c. It does not change
// anything that a match reads.
func (t *topic) replan(c *compiledDefinition) []*table {
	byName := map[string]*table{}
	for _, tb := range t.rules {
		byName[tb.name] = tb
	}
	rules := make([]*table, len(c.rulePlans))
	for i, p := range c.rulePlans {
		name := c.definition.Rules[i].Name
		tb := byName[name]
		if tb == nil {
			tb = &table{name: name, store: t.pages}
		}
		ix := t.indexerFor(t.pages)
		tb.each(func(row uint32) { p.insert(ix, row) })
		rules[i] = tb
	}
	return rules
}
