package evaluator

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

var (
	cases = flag.Int("cases", 3000, "how many generated conditions are compared")
	seed  = flag.Uint64("seed", 1, "of the generated conditions")
)

// celLimit is the cost at which the product makes cel-go stop.
const celLimit = 20_000

func celEnv(t testing.TB) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.Variable("event", cel.DynType), cel.Variable("ce", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// celValue converts JSON to the types that cel-go reads, with each number of the kind in which it
// is written.
func celValue(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("more than one value in %s", text)
	}
	return withNumbers(v)
}

func withNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(string(x), 10, 64); err == nil {
			return i
		}
		f, _ := strconv.ParseFloat(string(x), 64)
		return f
	case []any:
		for i := range x {
			x[i] = withNumbers(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = withNumbers(x[k])
		}
	}
	return v
}

var attributes = Attributes{ID: "a", Source: "/s", Time: time.Date(2026, 3, 27, 17, 30, 0, 123456789, time.UTC)}

func celAttributes() map[string]any {
	return map[string]any{"id": attributes.ID, "source": attributes.Source, "time": attributes.Time}
}

// A comparison counts the pairs that were compared.
type comparison struct {
	pairs, true_, false_, errors, undecided, refused, unchecked int

	// brokenOff counts evaluations in which cel-go itself failed: it panics when bytes are looked
	// up in a map, even if && or || does not need the result.
	brokenOff int
	// dispatched counts results that differ only with the type checker, which chooses the
	// overload for an element of an empty list before the list has elements.
	dispatched int
}

// celResult evaluates a program as the product does; costly reports that it stopped because of its
// cost.
func celResult(program cel.Program, variables map[string]any) (result Result, costly bool, reason string) {
	out, _, err := program.Eval(variables)
	switch {
	case err != nil && strings.Contains(err.Error(), "cost limit"):
		return Error, true, err.Error()
	case err != nil:
		return Error, false, err.Error()
	case out == types.True:
		return True, false, ""
	case out == types.False:
		return False, false, ""
	default:
		return Error, false, "no boolean"
	}
}

func (c *comparison) add(r Result) {
	c.pairs++
	switch r {
	case True:
		c.true_++
	case False:
		c.false_++
	case Error:
		c.errors++
	case Undecided:
		c.undecided++
	}
}

// uncheckedResult returns the result of cel-go without its type checker.
func uncheckedResult(t *testing.T, env *cel.Env, text string, variables map[string]any) Result {
	t.Helper()
	ast, issues := env.Parse(text)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast, cel.CostLimit(celLimit))
	if err != nil {
		t.Fatal(err)
	}
	result, _, _ := celResult(program, variables)
	return result
}

func TestVerdictsAreThoseOfCEL(t *testing.T) {
	env, topic := celEnv(t), &Topic{}
	g := newGenerator(*seed)
	type event struct {
		text      string
		variables map[string]any
		in        *Input
	}
	var events []event
	for range 40 {
		text := g.event()
		in, err := topic.Event(Event{Data: []byte(text), Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event{text, map[string]any{"event": celValue(t, text), "ce": celAttributes()}, in})
	}
	var count comparison
	failures := 0
	for range *cases {
		text := g.condition()
		ast, issues := env.Compile(text)
		if issues.Err() != nil {
			count.unchecked++
			if ast, issues = env.Parse(text); issues.Err() != nil {
				t.Fatalf("%s: %v", text, issues.Err())
			}
		}
		program, err := env.Program(ast, cel.CostLimit(celLimit))
		if err != nil {
			count.refused++
			continue
		}
		c, err := topic.Condition(text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, e := range events[:20] {
			want, costly, reason := celResult(program, e.variables)
			if strings.HasPrefix(reason, "internal error") {
				count.brokenOff++
				continue
			}
			got := c.Evaluate(e.in, nil)
			count.add(got.Result)
			if got.Result == Undecided || !costly && got.Result == want {
				continue
			}
			if want == Error && strings.Contains(text, "[]") && got.Result == uncheckedResult(t, env, text, e.variables) {
				count.dispatched++
				continue
			}
			t.Errorf("%s\nof %s\nis %s (%s), by cel-go %s (%s)", text, e.text, got.Result, got.Reason, want, reason)
			if failures++; failures > 10 {
				t.FailNow()
			}
			break
		}
	}
	t.Logf("%+v", count)
}
