package matching

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/condition"
)

// A celReference evaluates the conditions of a sample of subscriptions with cel-go. Each
// different condition is compiled once.
type celReference struct {
	programs []cel.Program
	subs     []any // params; nil for a filter
}

func newCELReference(w workload, sample []int) (*celReference, error) {
	env, err := cel.NewEnv(cel.CrossTypeNumericComparisons(true), cel.Variable("event", cel.DynType), cel.Variable("sub", cel.DynType),
		cel.Variable("title", cel.DynType),
		cel.Function("contains_ci", cel.Overload("contains_ci_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(func(text, part ref.Val) ref.Val {
				t, ok1 := text.(types.String)
				p, ok2 := part.(types.String)
				if !ok1 || !ok2 {
					return types.NewErr("no such overload")
				}
				return types.Bool(strings.Contains(strings.ToLower(string(t)), strings.ToLower(string(p))))
			}))))
	if err != nil {
		return nil, err
	}
	m := &celReference{}
	known := map[string]cel.Program{}
	rules := w.definition().Rules
	for _, i := range sample {
		text, rule, params := w.condition(i)
		var sub map[string]any
		if rule != "" {
			text = rules[slices.IndexFunc(rules, func(r condition.Rule) bool { return r.Name == rule })].When
			if err := json.Unmarshal(params, &sub); err != nil {
				return nil, err
			}
		}
		if known[text] == nil {
			checked, issues := env.Compile(text)
			if issues.Err() != nil {
				return nil, fmt.Errorf("%s: %w", text, issues.Err())
			}
			if known[text], err = env.Program(checked, cel.EvalOptions(cel.OptOptimize)); err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
		}
		m.programs, m.subs = append(m.programs, known[text]), append(m.subs, sub)
	}
	return m, nil
}

// answer returns the subscriptions of the sample that match an event, and the time of
// the evaluations without decoding the event.
func (m *celReference) answer(data []byte) (wanted []int, took time.Duration, err error) {
	var event map[string]any
	if err := json.Unmarshal(data, &event); err != nil {
		return nil, 0, err
	}
	vars := map[string]any{"event": event, "title": event["title"]}
	started := time.Now()
	for i, p := range m.programs {
		vars["sub"] = m.subs[i]
		if out, _, err := p.Eval(vars); err == nil && out == types.True {
			wanted = append(wanted, i)
		}
	}
	return wanted, time.Since(started), nil
}

// Sizes of the sample.
const (
	celSample = 1000
	celEvents = 100
)

// checkAgainstCEL compares the hits of some events with cel-go, for a sample of the
// subscriptions.
func checkAgainstCEL(x *condition.Index, w workload, n int, events [][]byte, result *matchResult) error {
	sample := make([]int, min(n, celSample))
	number := map[uint32]int{}
	for k := range sample {
		sample[k] = k * (n / len(sample))
		number[uint32(placeOf(sample[k]))] = k
	}
	naive, err := newCELReference(w, sample)
	if err != nil {
		return err
	}
	var judged report.Checks
	var took time.Duration
	var hits []condition.Hit
	for i := range celEvents {
		want, t, err := naive.answer(events[i])
		if err != nil {
			return err
		}
		took += t
		if hits, err = x.Match(matchKey, condition.Event{Data: events[i]}, hits[:0]); err != nil {
			return err
		}
		var got []int
		for _, h := range hits {
			if k, ok := number[uint32(h.Place)]; ok {
				got = append(got, k)
			}
		}
		slices.Sort(got)
		judged.Require(slices.Equal(got, want), "event %d: of %d conditions %d are true by cel-go, and %d matched", i, len(sample), len(want), len(got))
	}
	result.Wrong = append(result.Wrong, judged...)
	result.Sample = celEvents * len(sample)
	result.Naive = float64(took.Nanoseconds()) / float64(result.Sample)
	return nil
}
