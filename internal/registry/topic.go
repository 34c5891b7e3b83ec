package registry

import (
	"iter"

	"fanfare.dev/fanfare/internal/condition"
)

func (t *Topic) key() condition.Key { return condition.Key{Service: t.Service, Topic: t.Name} }

// Rule returns the rule with this name, or nil.
func (t *Topic) Rule(name string) *Rule {
	for i := range t.Rules {
		if t.Rules[i].Name == name {
			return &t.Rules[i]
		}
	}
	return nil
}

// ruleName returns the name of a rule by number, "" if there is none.
func (t *Topic) ruleName(number uint32) string {
	for i := range t.Rules {
		if t.Rules[i].Number == number {
			return t.Rules[i].Name
		}
	}
	return ""
}

func (t *Topic) ruleNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range t.Rules {
			if !yield(t.Rules[i].Name) {
				return
			}
		}
	}
}

// definition is what the match index has to know of the topic.
func (t *Topic) definition() condition.Definition {
	d := condition.Definition{Schema: t.Schema, Key: t.Key}
	for _, r := range t.Rules {
		d.Rules = append(d.Rules, condition.Rule{Name: r.Name, When: r.When, Params: r.Params})
	}
	return d
}
