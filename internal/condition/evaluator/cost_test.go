package evaluator

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
)

// typedFields are variables with the types that a schema gives them, because cel-go counts
// differently when it knows a type.
func typedEnv(t *testing.T) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.Variable("event", cel.DynType), cel.Variable("ce", cel.DynType),
		cel.Variable("s", cel.StringType), cel.Variable("t", cel.StringType), cel.Variable("n", cel.IntType),
		cel.Variable("l", cel.ListType(cel.IntType)), cel.Variable("ls", cel.ListType(cel.StringType)),
		cel.Variable("os", cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
		cel.Variable("o", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

var bareField = regexp.MustCompile(`\bevent\.(s|t|n|l|ls|os|o)\b`)

const typedSchema = `{"properties":{"s":{},"t":{},"n":{},"l":{},"ls":{},"os":{},"o":{}}}`

// costly are conditions that are expensive for large events.
var costly = []string{
	"event.l.exists(x, event.l.exists(y, x + y == -1))",
	"event.l.all(x, event.l.all(y, x * y >= 0))",
	"event.s.contains(event.t)", "event.t.contains(event.s)", "event.s.matches(event.t)",
	"event.s.matches('(a?b?c?){30}x')", "event.ls.exists(x, event.s.contains(x))",
	"event.ls.exists(x, x.matches('a+b') && event.s.contains('bbb'))",
	"event.s + event.s + event.s + event.t == event.t", "size(event.s + event.s) > 5",
	"event.l + event.l == event.l", "event.ls + event.ls == event.ls", "event.l == event.l && event.ls == event.ls",
	"event.l.map(x, [x, x]).map(x, x + x).size() > 4", "event.l.map(x, string(x)).exists(x, x == 'q')",
	"event.l.filter(x, x > 1).exists(x, x in event.l)", "event.l.exists_one(x, x in event.l)",
	"event.os.exists(x, x == event.o)", "event.os == event.os", "event.o in event.os",
	"event.ls.all(x, x in event.ls)", "event.ls.all(x, x in ['p', 'q', 'r', 'a', 'b'])",
	"event.ls.map(x, {x: event.s}).exists(x, 'q' in x)", "event.ls.map(x, x + event.s).exists(x, x.startsWith(event.s))",
	"bytes(event.s) == bytes(event.s + event.t)", "string(bytes(event.s)) == event.s", "event.s == event.s && event.t < event.s",
	"event.ls.map(x, timestamp('2026-01-01T00:00:00Z')).exists(x, x.getHours('Europe/Berlin') == 3)",
	"event.l.map(x, [1, 2, 3, 4].map(y, [x, y])).size() == 1", "[[1,2,3,4,5],[1,2,3,4,5]].all(x, x.all(y, event.s.contains('b')))",
	"[1,2,3,4,5,6].all(a, [1,2,3,4,5,6].all(b, [1,2,3,4,5,6].all(c, [1,2,3,4,5,6].all(d, [1,2,3,4,5,6].all(e, a + b + c + d + e > 0)))))",
	"event.s.startsWith(event.t) || event.s.endsWith(event.t)", "event.l.exists(x, has(event.o.a) && event.o.a == x)",
	"event.l.exists(x, [event.s, event.s][0] == event.s)", "event.l.exists(x, {'a': 1, 'b': 2}.size() == x)",
	"event.l.map(x, event.l).size() == 1", "event.l.map(x, event.l)[0] == event.l",
	"event.l.map(x, x > 1, event.l.map(y, y)).exists(z, z == event.l)",
}

// Wherever all steps are counted, the cost of cel-go is below four times the steps. Therefore a
// condition that exceeds the cost limit of cel-go takes more than maxSteps.
func TestConditionsBeyondTheCostLimitOfCELAreUndecided(t *testing.T) {
	topic, err := NewTopic([]byte(typedSchema))
	if err != nil {
		t.Fatal(err)
	}
	g := newGenerator(*seed)
	type large struct {
		variables map[string]any
		in        *Input
	}
	var events []large
	for i := range 12 {
		text := g.event()
		if i%4 != 0 {
			text = g.large()
		}
		in, err := topic.Event(Event{Data: []byte(text), Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		data, ok := celValue(t, text).(map[string]any)
		if !ok {
			t.Fatal("an event is no object")
		}
		variables := map[string]any{"event": data, "ce": celAttributes()}
		for _, name := range []string{"s", "t", "n", "l", "ls", "os", "o"} {
			if v, ok := data[name]; ok {
				variables[name] = v
			}
		}
		events = append(events, large{variables, in})
	}
	texts := append([]string(nil), costly...)
	for range *cases / 10 {
		texts = append(texts, g.condition())
	}
	envs := map[string]*cel.Env{"dynamic": celEnv(t), "typed": typedEnv(t)}
	evaluations, refused, undecided, worst, worstText := 0, 0, 0, 0.0, ""
	for _, text := range texts {
		for name, env := range envs {
			if name == "typed" {
				text = bareField.ReplaceAllString(text, "$1")
			}
			ast, issues := env.Compile(text)
			if issues.Err() != nil {
				continue
			}
			program, err := env.Program(ast, cel.CostLimit(celLimit), cel.CostTracking(nil))
			if err != nil {
				continue
			}
			c, err := topic.Condition(text, nil)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for i, e := range events {
				_, details, err := program.Eval(e.variables)
				if err != nil && strings.Contains(err.Error(), "internal error") {
					continue
				}
				evaluations++
				over := err != nil && strings.Contains(err.Error(), "cost limit")
				got := c.Evaluate(e.in, nil)
				if over {
					refused++
					if got.Result != Undecided {
						t.Errorf("%s, %s, of event %d: refused by cel-go because of its cost, here %s", name, text, i, got.Result)
					}
					continue
				}
				if got.Result == Undecided {
					undecided++
					continue
				}
				counted := evaluation{in: e.in, counting: true}
				counted.eval(c.root)
				bound := bounder{given: e.in.extent}
				most, _ := bound.bound(c.root)
				if counted.steps > maxSteps {
					continue
				}
				if counted.steps > most {
					t.Errorf("%s, of event %d: %v steps, at most %v were expected", text, i, counted.steps, most)
				}
				if details == nil || details.ActualCost() == nil {
					continue
				}
				if ratio := float64(*details.ActualCost()) / counted.steps; ratio > worst {
					worst, worstText = ratio, fmt.Sprintf("%s, %s: %d of cel-go, %v steps", name, text, *details.ActualCost(), counted.steps)
				}
			}
		}
	}
	if refused < 50 {
		t.Errorf("cel-go refused only %d evaluations: the conditions cost too little", refused)
	}
	if worst > 2 {
		t.Errorf("cel-go costs %.1f times the steps: %s", worst, worstText)
	}
	t.Logf("%d evaluations, %d refused by cel-go, %d more undecided; cel-go's cost is at most %.2f times the steps: %s",
		evaluations, refused, undecided, worst, worstText)
}
