package jmespath_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/jmespath"
)

// decode returns decoded JSON.
func decode(t testing.TB, text string) any {
	t.Helper()
	if text == "" {
		return nil
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestFilters has the rules of NotifyBC's filters, one by one.
func TestFilters(t *testing.T) {
	for _, c := range []struct {
		name, filter, data string
		match              bool
	}{
		{"without a filter, all match", "", `{"a":1}`, true},
		{"without data, all match", "contains(title, 'x')", "", true},
		{"an empty object is data", "a", `{}`, false},
		{"a word of the title", "contains_ci(title, 'VANCOUVER') || contains_ci(title, 'victoria')", `{"title":"New in Vancouver"}`, true},
		{"another word", "contains_ci(title, 'kelowna')", `{"title":"New in Vancouver"}`, false},
		{"contains_ci of an empty text is false", "contains_ci(title, '')", `{"title":"x"}`, false},
		{"contains_ci of a number is an error", "!contains_ci(title, 'x')", `{"title":1}`, false},
		{"contains respects case", "contains(title, 'new')", `{"title":"New"}`, false},
		{"an element of a list", "contains(provinces, 'BC')", `{"provinces":["AB","BC"]}`, true},
		{"a missing field is null", "province == `null`", `{"a":1}`, true},
		{"0 is true", "a", `{"a":0}`, true},
		{"an empty text is false", "a", `{"a":""}`, false},
		{"an empty list is false", "a", `{"a":[]}`, false},
		{"an empty object is false", "a", `{"a":{}}`, false},
		{"null is false", "a", `{"a":null}`, false},
		{"== is deep", "a == `{\"x\": [1, {\"y\": null}]}`", `{"a":{"x":[1,{"y":null}]}}`, true},
		{"== is strict", "a == '1'", `{"a":1}`, false},
		{"texts have an order", "a < 'b'", `{"a":"a"}`, true},
		{"texts are compared by code unit", "a < 'a'", `{"a":"Z"}`, true},
		{"null counts as 0", "a < `1`", `{}`, true},
		{"numeric texts are numbers", "a > `9`", `{"a":"10"}`, true},
		{"other texts are no numbers", "a > `9`", `{"a":"x"}`, false},
		{"nor are they smaller", "a <= `9`", `{"a":"x"}`, false},
		{"a true operand ends ||", "b == 'y' || contains_ci(a, 'x')", `{"b":"y"}`, true},
		{"an error on its left does not", "contains_ci(a, 'x') || b == 'y'", `{"b":"y"}`, false},
		{"a false operand ends &&", "b == 'z' && contains_ci(a, 'x')", `{"b":"y"}`, false},
		{"an error is not negated", "!contains_ci(a, 'x')", `{"b":"y"}`, false},
		{"an unknown function is an error", "b == 'z' || fuzzy(b)", `{"b":"y"}`, false},
		{"a wrong number of arguments is an error", "!contains(b)", `{"b":"y"}`, false},
		{"nested fields, indexes and projections", "a.b[0].c == 'x' && length(a.b[*].c) == `2` && a.b[?c == 'z'] | length(@) == `1`",
			`{"a":{"b":[{"c":"x"},{"c":"z"}]}}`, true},
		{"quoted names", `"street name" == 'Main'`, `{"street name":"Main"}`, true},
		{"multi-selects", "{x: a, y: b}.y == `2` && [a, b][1] == `2`", `{"a":1,"b":2}`, true},
		{"the current value in brackets", "(@.a) == `1`", `{"a":1}`, true},
		{"an escaped quote", `name == 'O\'Hara\'s'`, `{"name":"O'Hara's"}`, true},
		{"a text that closes the filter", "a] | [?b == `1`", `{"a":1,"b":1}`, true},
		{"a text that closes the filter, without a match", "a] | [?b == `1`", `{"a":1,"b":2}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := jmespath.CompileFilter(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Match(decode(t, c.data)); got != c.match {
				t.Errorf("%s is %v of %s", c.filter, got, c.data)
			}
		})
	}
}

// TestSyntaxErrors has texts that do not compile, and where the mistake is.
func TestSyntaxErrors(t *testing.T) {
	for text, offset := range map[string]int{
		"a ==":                        4,
		"a = 'x'":                     2,
		"a == 'x":                     5,
		"a == `{`":                    5,
		"a == \"x":                    5,
		"a b":                         2,
		"a.":                          2,
		"(a":                          2,
		"a] b":                        3,
		"a == 1":                      5,
		"#":                           0,
		"'a'('b')":                    3,
		"\"f\"(a)":                    0,
		"a[-]":                        2,
		"a[1:2:3:4]":                  7,
		strings.Repeat("!", 80) + "a": 63,
		strings.Repeat("a", 5000):     4094,
	} {
		_, err := jmespath.CompileFilter(text)
		e, ok := errors.AsType[*jmespath.SyntaxError](err)
		if !ok || e.Offset != offset {
			t.Errorf("%.20q: error %v (%+v), want one at %d", text, err, e, offset)
		}
	}
}

// TestBudget evaluates expressions that would take very long, or much memory; each ends at its budget.
func TestBudget(t *testing.T) {
	list := make([]any, 1000)
	for i := range list {
		list[i] = map[string]any{"n": float64(i), "text": strings.Repeat("x", 1000)}
	}
	data := map[string]any{"list": list}
	doubled := strings.Repeat("[@,@]|", 60)
	for _, text := range []string{
		"map(&map(&n, @), [" + strings.Repeat("list,", 29) + "list])",
		doubled + "to_string(@)",
		doubled + "@ == `1` || " + doubled + "to_string(@) == 'x'",
		"join('x', list[*].text) && join('x', list[*].text)",
		"list[*].[text, text, text, text, text, text, text][] | join('', @)",
		"sort_by(list, &n) | sort_by(@, &n) | sort_by(@, &n)",
		"[list, list, list, list, list, list, list, list, list, list, list][][].[@,@]",
		"list[::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1] | [::-1]",
	} {
		x, err := jmespath.Compile(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, err := x.Search(data); !errors.Is(err, jmespath.ErrBudget) {
			t.Errorf("%.60s: error %v, want the budget's", text, err)
		}
		f, err := jmespath.CompileFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		if f.Match(data) {
			t.Errorf("%.60s: a filter beyond the budget is a match", text)
		}
	}
}

// TestMatchDoesNotAllocate shows that a simple filter is evaluated without allocation.
func TestMatchDoesNotAllocate(t *testing.T) {
	data := decode(t, `{"title":"new in vancouver","n":12,"tags":["a","b"]}`)
	for _, text := range []string{
		"contains_ci(title, 'Victoria') || contains_ci(title, 'Vancouver')", "n > `10` && title != 'x'", "contains(tags, 'b')",
	} {
		f, err := jmespath.CompileFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		var e jmespath.Evaluator
		e.Match(f, data)
		if n := testing.AllocsPerRun(100, func() {
			if !e.Match(f, data) {
				t.Fatalf("%s is false", text)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

// FuzzFilter compiles and evaluates any text: it ends, within its budget, and always in the same way.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{"contains_ci(title,'x')||a.b[0]>=`1`", "a[?b=='c'].d|[0]", "sort_by(a,&b)[::-1]", "*.a[]", "{a:b}.a", `"a\u0041"`} {
		f.Add(text, `{"title":"X","a":[{"b":1}]}`)
	}
	f.Fuzz(func(t *testing.T, text, data string) {
		x, err := jmespath.CompileFilter(text)
		if err != nil {
			if e, ok := errors.AsType[*jmespath.SyntaxError](err); !ok || e.Offset < 0 || e.Offset > len(text) {
				t.Fatalf("error %#v", err)
			}
			return
		}
		var v any
		if json.Unmarshal([]byte(data), &v) != nil {
			return
		}
		before := fmt.Sprint(v)
		if first := x.Match(v); first != x.Match(v) {
			t.Fatal("the result changes")
		}
		if fmt.Sprint(v) != before {
			t.Fatal("the data changes")
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	data := decode(b, `{"title":"A new title with the word Victoria and others","description":"some text"}`)
	f, err := jmespath.CompileFilter("contains_ci(title,'vancouver') || contains_ci(title,'victoria')")
	if err != nil {
		b.Fatal(err)
	}
	var e jmespath.Evaluator
	b.ReportAllocs()
	for b.Loop() {
		e.Match(f, data)
	}
}
