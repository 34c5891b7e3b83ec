package verify

import (
	"errors"
	"fmt"
	"sync"

	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/condition/evaluator"
)

// A language evaluates the conditions of one definition of a topic. It is safe for
// concurrent use.
type language struct {
	definition *condition.Definition
	topic      *evaluator.Topic
	rules      map[string]ruleText

	mu     sync.Mutex
	parsed map[string]*evaluator.Condition // by the text of a filter or the name of a rule
}

type ruleText struct {
	when   string
	params map[string]string
	order  int16 // in the topic's order of rules
}

// maxParsed is the number of parsed conditions in a language. Beyond that, all are dropped and parsed
// again when they are needed.
const maxParsed = 8192

func newLanguage(def *condition.Definition) (*language, error) {
	topic, err := evaluator.NewTopic(def.Schema)
	if err != nil {
		return nil, err
	}
	l := &language{definition: def, topic: topic, rules: map[string]ruleText{}, parsed: map[string]*evaluator.Condition{}}
	for i, r := range def.Rules {
		params := r.Params
		if params == nil {
			params = map[string]string{} // a filter has none, a rule may have an empty set
		}
		l.rules[r.Name] = ruleText{r.When, params, int16(i)}
	}
	return l, nil
}

// ruleMark is the prefix of the key of a rule. No filter has a zero byte.
const ruleMark = "\x00"

func (l *language) parse(filter, rule string) (*evaluator.Condition, error) {
	key, text := filter, ruleText{when: filter}
	if rule != "" {
		var known bool
		if text, known = l.rules[rule]; !known {
			return nil, fmt.Errorf("the topic no longer has the rule %q", rule)
		}
		key = ruleMark + rule
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.parsed[key]; c != nil {
		return c, nil
	}
	c, err := l.topic.Condition(text.when, text.params)
	if err != nil {
		return nil, err
	}
	if len(l.parsed) >= maxParsed {
		clear(l.parsed)
	}
	l.parsed[key] = c
	return c, nil
}

// evaluate evaluates a condition. A condition that cannot be parsed is undecided: the index has
// accepted it, so the evaluator lacks a feature.
func (l *language) evaluate(c *condition.Condition, in *evaluator.Input) evaluator.Verdict {
	parsed, err := l.parse(c.Filter, c.Rule)
	if err != nil {
		return evaluator.Verdict{Result: evaluator.Undecided, Reason: err.Error()}
	}
	var params *evaluator.Params
	if c.Rule != "" {
		if params, err = parsed.Params(c.Params); err != nil {
			return evaluator.Verdict{Result: evaluator.Undecided, Reason: err.Error()}
		}
	}
	return parsed.Evaluate(in, params)
}

// input decodes an event for the evaluator.
func (l *language) input(e *condition.Event) (*evaluator.Input, error) {
	a := &e.Attributes
	extensions := make(map[string][]byte, len(a.Extensions))
	for name, raw := range a.Extensions {
		extensions[name] = raw
	}
	return l.topic.Event(evaluator.Event{Data: e.Data, Was: e.Previous, Attributes: evaluator.Attributes{
		ID: a.ID, Source: a.Source, Type: a.Type, Subject: a.Subject, Time: a.Time, Extensions: extensions,
	}})
}

// ErrUndecided means that the evaluator could not decide an event in time. No notification of
// the event may be sent.
var ErrUndecided = errors.New("the evaluator cannot match the event without the index")
