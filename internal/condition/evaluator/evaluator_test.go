package evaluator

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestNamesFollowTheLanguage(t *testing.T) {
	topic, err := NewTopic([]byte(`{"properties":{"title":{},"type":{},"event":{},"ce":{},"int":{},"size":{},"if":{},"x-y":{},"geo":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	data := `{"title":"a","type":"b","event":"c","ce":"d","int":"e","size":"f","if":"g","x-y":"h","geo":"i","tags":["t"]}`
	for text, want := range map[string]Result{
		"title == 'a'": True, ".title == 'a'": True, "event.type == 'b'": True, "event.event == 'c'": True, "event.ce == 'd'": True,
		"int == int": True, "event.int == 'e'": True, "size == 'f' && size(size) == 1": True, "event.if == 'g'": True, "event.`x-y` == 'h'": True,
		"geo == 'i' && geo.within(0, 0, 0, 0, 1)": True, "has(title)": True, "event.size() == 10": True,
		"event.tags.exists(title, title == 't')": True, "event.tags.exists(title, .title == 'a')": True,
		"event.tags.exists(event, event == 't' && .event.title == 'a')": True, "event.tags.exists(ce, ce == 't')": True,
		"event.tags.exists(int, int == 't')": True, "event.tags.map(t, t).exists(t, t == 't')": True,
		"[[1], [2]].exists(x, x.exists(x, x == 2))": True, "type(ce.time) == google.protobuf.Timestamp": True,
		"ce.id == 'a' && ce['source'] == '/s'": True, "has(ce.subject)": False, "ce.subject == ''": Error, "size(ce) == 3": True,
		"":                 True,
		"event.gone":       Error,
		"title":            Error,
		"'a'":              Error,
		"event.gone || 1":  Error,
		"1 == 1 || title":  True,
		"!(title == 'a')":  False,
		"true // the end ": True,
	} {
		if got := decideOne(t, topic, text, data); got.Result != want {
			t.Errorf("%s is %s (%s)", text, got.Result, got.Reason)
		}
	}
	for _, text := range []string{"sub.x == 1", "nothing == 1", "foo(1)", "title.foo()", "size()", "size(1, 2)", "contains('a', 'b')", "'a'.size(1)", "type == 1 && gone",
		"[1].all(x)", "[1].all(1, true)", "[1].map(x, y, z, 1)", "has(1)", "has(event)", "has(event[1])", "x.exists(x, true)", "[1].exists(x, true) && x", "if == 1",
		"crosses(1)", "crosses([1].map(x, x), 1)", "[1].exists(x, crosses(x, 1))", "title.crosses(1)", "geo.within(1)", "contains_ci('a')", "'a'.contains_ci('b')",
		"google.protobuf.Duration{}", "event.a{}", "timestamp == 1", "dyn", " ", "a.b.c(1)", "event.?a", strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300),
		strings.Repeat("true || ", 9000) + "true"} {
		if _, err := topic.Condition(text, nil); err == nil {
			t.Errorf("%.60s was accepted", text)
		}
	}
}

func TestErrorsHavePositions(t *testing.T) {
	for text, want := range map[string]string{
		"event.a ==\n  titel": `2:3: unknown name "titel"`,
		"event.a === 1":       "1:11: unexpected character '='",
		"é == 1":              "1:1: unexpected character 'é'",
		"'é' == $":            "1:8: unexpected character '$'",
		"event.a == 'x":       "1:12: the string is not terminated",
		"":                    "",
	} {
		_, err := (&Topic{}).Condition(text, nil)
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestReasonsNameTheFailure(t *testing.T) {
	topic := &Topic{}
	for text, want := range map[string]string{
		"event.gone == 1":                         "no such field gone",
		"event.a > 'x'":                           "no such overload",
		"event.gone > 1 || event.lost > 1":        "no such field gone",
		"1 / event.zero > 1":                      "division by zero",
		"event.l[7] == 1":                         "the index is out of range",
		"event['gone'] == 1":                      "no such field gone",
		"event.o.map(k, k)[0] == 'a'":             noOrder,
		"{[1]: 1} == {}":                          "a list cannot be a key",
		"{1: 1, 1: 2} == {}":                      "the map contains the same key twice",
		"timestamp('x') == ce.time":               `"x" is not an RFC 3339 time`,
		"ce.time.getHours('Local') == 1":          `unknown time zone "Local"`,
		"[1, 2, 3].all(x, event.big.all(y, x>0))": tooManySteps,
	} {
		data := `{"a":1,"zero":0,"l":[1],"o":{"a":1,"b":2},"big":[` + strings.Repeat("1,", 2000) + `1]}`
		if got := decideOne(t, topic, text, data); got.Reason != want {
			t.Errorf("%s is %s because of %q, want %q", text, got.Result, got.Reason, want)
		}
	}
}

func TestTheOrderOfKeysDecidesNothing(t *testing.T) {
	topic := &Topic{}
	for text, want := range map[string]Result{
		"event.o.map(k, k).size() == 2":                                           True,
		"'a' in event.o.map(k, k)":                                                True,
		"1 in event.o.map(k, event.o[k])":                                         True,
		"event.o.map(k, event.o[k]).exists(v, v == 2)":                            True,
		"event.o.filter(k, k == 'a') == ['a']":                                    True,
		"event.o.filter(k, k == 'a')[0] == 'a'":                                   True,
		"event.o.map(k, k) == ['a']":                                              False,
		"event.o.map(k, k) == ['a', 'b']":                                         Undecided,
		"event.o.map(k, k) != ['b', 'a']":                                         Undecided,
		"event.o.map(k, k)[0] == 'a'":                                             Undecided,
		"(event.o.map(k, k) + ['c'])[2] == 'c'":                                   Undecided,
		"event.o.map(k, k).map(x, x)[1] == 'c'":                                   Undecided,
		"[event.o.map(k, k)] == [['a', 'b']]":                                     Undecided,
		"{'x': event.o.map(k, k)} == {'x': ['a', 'b']}":                           Undecided,
		"['a', 'b'] in [event.o.map(k, k)]":                                       Undecided,
		"event.o.map(k, k) == ['a', 'b'] || true":                                 True,
		"event.o.map(k, k) == ['a', 'b'] && event.gone":                           Undecided,
		"event.o.map(k, k)[0] == event.gone":                                      Error,
		"event.o.map(k, k)[0] == 'a' ? true : true":                               Undecided,
		"[1].exists_one(x, event.o.map(k, k)[0] == 'a')":                          Undecided,
		"[1, 2].exists_one(x, x == 2 ? event.gone : event.o.map(k, k)[0] == 'a')": Error,
		"!(event.o.map(k, k)[0] == 'a')":                                          Undecided,
	} {
		if got := decideOne(t, topic, text, `{"o":{"a":1,"b":2}}`); got.Result != want {
			t.Errorf("%s is %s (%s), want %s", text, got.Result, got.Reason, want)
		}
	}
}

func TestParamsAreExactlyThoseOfTheRule(t *testing.T) {
	topic := &Topic{}
	c, err := topic.Condition("event.a >= sub.level && event.b == sub.word && event.c in sub.words && sub.flag", ruleParams)
	if err != nil {
		t.Fatal(err)
	}
	for raw, wrong := range map[string]bool{
		`{"level":1,"word":"a","words":["x"],"flag":true}`:        false,
		`{"level":1,"word":"a","words":[],"flag":true}`:           false,
		`{"level":"1","word":"a","words":["x"],"flag":true}`:      true,
		`{"level":1,"word":null,"words":["x"],"flag":true}`:       true,
		`{"level":1,"word":"a","words":["x",1],"flag":true}`:      true,
		`{"level":1,"word":"a","words":"x","flag":true}`:          true,
		`{"level":1,"word":"a","words":["x"]}`:                    true,
		`{"level":1,"word":"a","words":["x"],"flag":true,"no":1}`: true,
		`{"level":1,"word":"a","words":["x"],"flag":"true"}`:      true,
		`[]`:   true,
		`{`:    true,
		`null`: true,
	} {
		if _, err := c.Params([]byte(raw)); (err != nil) != wrong {
			t.Errorf("%s: %v", raw, err)
		}
	}
	in, err := topic.Event(Event{Data: []byte(`{"a":1,"b":"a","c":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Params([]byte(`{"level":1,"word":"a","words":["x"],"flag":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Evaluate(in, p); got.Result != True {
		t.Errorf("is %s (%s)", got.Result, got.Reason)
	}
	if got := c.Evaluate(in, nil); got.Result != Error {
		t.Errorf("without params is %s", got.Result)
	}
	zero, err := topic.Condition("string(sub.n) == '0' && type(sub.n) == double", map[string]string{"n": "number"})
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`{"n":-0.0}`, `{"n":-0}`, `{"n":0}`} {
		if p, err = zero.Params([]byte(raw)); err != nil {
			t.Fatal(err)
		}
		if got := zero.Evaluate(in, p); got.Result != True {
			t.Errorf("%s is %s (%s)", raw, got.Result, got.Reason)
		}
	}
	if _, err := topic.Condition("sub.other == 1", ruleParams); err == nil {
		t.Error("a param that the rule does not have was accepted")
	}
	if _, err := topic.Condition("true", map[string]string{"a": "date"}); err == nil {
		t.Error("a param of an unknown type was accepted")
	}
}

func TestEventsThatAreNotJSONAreRefused(t *testing.T) {
	topic := &Topic{}
	for _, e := range []Event{{Data: []byte("{")}, {Data: []byte("1 2")}, {Data: []byte(" ")}, {Was: []byte("x")},
		{Attributes: Attributes{Extensions: map[string][]byte{"a": []byte("{}")}}}, {Attributes: Attributes{Extensions: map[string][]byte{"a": nil}}}} {
		if _, err := topic.Event(e); err == nil {
			t.Errorf("%+v was accepted", e)
		}
	}
	in, err := topic.Event(Event{Attributes: Attributes{ID: "own", Extensions: map[string][]byte{"id": []byte(`"other"`), "n": []byte("7"), "flag": []byte("true")}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := topic.Condition("event == null && ce.id == 'own' && ce.n == 7.0 && ce.flag && !has(ce.time)", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Evaluate(in, nil); got.Result != True {
		t.Errorf("is %s (%s)", got.Result, got.Reason)
	}
}

func TestABatchWithoutEventsIsEmpty(t *testing.T) {
	topic := &Topic{}
	c, err := topic.Condition("event.a == 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if true_, error_, undecided := NewBatch(topic, nil).Evaluate(c, nil); len(true_)+len(error_)+len(undecided) != 0 {
		t.Error("there are results without events")
	}
}

// The test evaluates so many different conditions that the results exceed the limit several times.
func TestABatchLimitsItsMemory(t *testing.T) {
	g, topic := newGenerator(*seed), &Topic{}
	batch := NewBatch(topic, g.inputs(t, topic, 500))
	batch.limit = 200_000
	most, forgotten, before := 0, 0, 0
	for i := range 1000 {
		c, err := topic.Condition(fmt.Sprintf("event.n == %d || event.s + 'x%d' == 'a'", i, i), nil)
		if err != nil {
			t.Fatal(err)
		}
		batch.Evaluate(c, nil)
		if most = max(most, batch.kept); batch.kept < before {
			forgotten++
		}
		before = batch.kept
	}
	if most > batch.limit || forgotten < 10 {
		t.Errorf("%d bytes were kept, and forgotten %d times", most, forgotten)
	}
}

// This test is useful with the race detector.
func TestConditionsAndTopicsAreSafeForConcurrentUse(t *testing.T) {
	topic := &Topic{}
	c, err := topic.Condition("event.s.matches(event.t) || ce.time.getHours(event.z) == 3", nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for n := range 200 {
				in, err := topic.Event(Event{Data: fmt.Appendf(nil, `{"s":"a","t":"b%d","z":"+0%d:%02d"}`, n, i, n%60), Attributes: attributes})
				if err != nil {
					t.Error(err)
					return
				}
				c.Evaluate(in, nil)
				NewBatch(topic, []*Input{in}).Evaluate(c, nil)
			}
		})
	}
	group.Wait()
	t.Logf("in %v", time.Since(start))
}
