package registry

import (
	"iter"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// topicState is what a Topic has for the registry alone.
type topicState struct {
	service uint32                      // number
	filters *checkedTexts[fanfare.Cost] // that are good for this schema, and what they cost
	body    *topicBody
}

func (t *Topic) key() condition.Key { return condition.Key{Service: t.Service, Topic: t.Name} }

// rule returns the rule with this name, or nil.
func (t *Topic) rule(name string) *Rule {
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
