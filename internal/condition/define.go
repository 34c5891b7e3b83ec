package condition

import (
	"fmt"
	"maps"

	"fanfare.dev/fanfare"
)

// define makes c what the topic says from now on. Subscriptions stay: their
// filters are compiled anew, rules are matched by name. Where one of them could
// not go on, nothing changes.
func (t *topic) define(c *compiledTopic) error {
	t.change.Lock()
	defer t.change.Unlock()
	old := t.compile.Load()
	if old != nil && old.source.equal(&c.source) {
		return nil
	}
	t.loaded = false
	if err := t.keepsRules(c); err != nil {
		return err
	}
	fresh, terms, err := t.recompile(c)
	if err != nil {
		return err
	}
	t.filters.replant(terms, t.at(&t.filters.rows))
	for i, r := range t.filters.forms {
		at := t.at(&t.filters.rows)
		r.each(func(row uint32) { fresh[i].plan.insert(at, row) })
	}
	rules := t.replan(c)

	t.mu.Lock()
	defer t.mu.Unlock()
	for i, r := range t.filters.forms {
		t.paths.unlink(r.plan.paths)
		r.plan = fresh[i].plan
		t.paths.link(r.plan.paths)
	}
	t.filters.redefine(terms, &t.paths)
	for _, r := range t.rules {
		t.paths.unlink(r.plan.paths)
	}
	t.memos = 0
	for i, r := range rules {
		r.order, r.params, r.plan = int16(i), c.rules[i].params, c.plans[i]
		t.paths.link(r.plan.paths)
		for j := range r.plan.residuals {
			if r.plan.residuals[j].column >= 0 {
				r.plan.residuals[j].memo = t.memos
				t.memos++
			}
		}
	}
	t.rules = rules
	t.compile.Store(c)
	return nil
}

// fits is the part of define that may refuse.
func (t *topic) fits(c *compiledTopic) error {
	t.change.Lock()
	defer t.change.Unlock()
	if err := t.keepsRules(c); err != nil {
		return err
	}
	_, _, err := t.recompile(c)
	return err
}

// keepsRules refuses to take a rule away, or change its params, under
// subscriptions.
func (t *topic) keepsRules(c *compiledTopic) error {
	for _, r := range t.rules {
		if r.live == 0 {
			continue
		}
		number := c.rule(r.name)
		e := &fanfare.Error{Code: fanfare.Conflict, Pointer: "/rules", Hint: "give the changed rule a new name, or end these subscriptions first"}
		if number < 0 {
			e.Message = fmt.Sprintf("%s to rule %q, which would vanish", subscriptions(r.live), r.name)
			return e
		}
		was := t.compile.Load().source.Rules[r.order].Params
		if !maps.Equal(was, c.source.Rules[number].Params) {
			e.Pointer = pointer("rules", fmt.Sprint(number), "params")
			e.Message = fmt.Sprintf("%s to rule %q, whose params would change", subscriptions(r.live), r.name)
			return e
		}
	}
	return nil
}

func subscriptions(n int) string {
	if n == 1 {
		return "there is 1 subscription"
	}
	return fmt.Sprintf("there are %d subscriptions", n)
}

// recompile compiles the forms in use for c, and the terms.
func (t *topic) recompile(c *compiledTopic) (forms, terms []*form, err error) {
	forms, err = t.allAgain(c, t.filters.forms, compileForm)
	if err == nil {
		terms, err = t.allAgain(c, t.filters.terms.list, compileTerm)
	}
	return forms, terms, err
}

func (t *topic) allAgain(c *compiledTopic, rules []*rule, compile compiler) (fresh []*form, err error) {
	fresh = make([]*form, len(rules))
	for i, r := range rules {
		if fresh[i], err = t.again(c, r, compile); err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// again compiles a form or a term for c.
func (t *topic) again(c *compiledTopic, r *rule, compile compiler) (*form, error) {
	s, _ := readSkeleton(r.name, nil)
	fm, err := compile(c.filters, r.key, r.name, &s, r.taken)
	if err != nil {
		fl := t.filters.oneOf(r)
		return nil, &fanfare.Error{Code: fanfare.Conflict, Pointer: "/schema",
			Message: fmt.Sprintf("%s with the filter %q, which the new schema does not allow: %v", subscriptions(int(fl.count)), fl.text, err),
			Hint:    "keep the field in the schema, or end these subscriptions first"}
	}
	return fm, nil
}

// replan fills the plans of c with the rows of the rules that stay. It changes
// nothing that a match reads.
func (t *topic) replan(c *compiledTopic) []*rule {
	byName := map[string]*rule{}
	for _, r := range t.rules {
		byName[r.name] = r
	}
	rules := make([]*rule, len(c.plans))
	for i, p := range c.plans {
		name := c.source.Rules[i].Name
		r := byName[name]
		if r == nil {
			r = &rule{name: name, rows: t.rows}
		}
		at := t.at(t.rows)
		r.each(func(row uint32) { p.insert(at, row) })
		rules[i] = r
	}
	return rules
}
