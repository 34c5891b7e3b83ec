package condition

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// The model tests draw conditions, events and params from small sets of values, so that many of
// them match, and now and then an unusual value.

var (
	sampleTexts = []string{"", "a", "ab", "Vancouver", "vancouver island", "ANCOUV", "couver", "VICTORIA", "abcdabcd", "bcda",
		"K\u212a", "\u03a3\u03c2", "\u0130stanbul", "stra\u00dfe"}
	sampleNumbers = []string{"0", "-0", "1", "2", "2.0", "2.5", "-3", "5e0", "9007199254740993", "9007199254740992", "9007199254740992.0", "1e300", "7", "89.5", "-179.5", "180", "-180"}
)

func pick[T any](t *rapid.T, from []T) T { return from[rapid.IntRange(0, len(from)-1).Draw(t, "pick")] }

// oneIn returns true once in n calls.
func oneIn(t *rapid.T, n int) bool { return rapid.IntRange(0, n-1).Draw(t, "one in") == n-1 }

// drawAccepted draws a value that good accepts. After eight attempts it returns some, which good
// always accepts.
func drawAccepted[T any](t *rapid.T, good func(T) error, some T, draw func() T) T {
	for range 8 {
		if one := draw(); good(one) == nil {
			return one
		}
	}
	return some
}

// drawField draws a way to name a value of the event.
func drawField(t *rapid.T, bare bool) string {
	fields := []string{"event.n", "event.m", "event.s", "event.p", "event.b", "event.o.n", "event.o.s", "event.o.o.s", "event['s']", "event.list", "event.gone",
		"ce.source", "ce.subject", "ce.ext", "event.s + event.p", "event.n + 1.0", "event.n + 1", "size(event.list)",
		"double(event['n'])", "event['s'] + event['p']", "event['o']['n']", "event.list[0]['s']", "ce['ext']", "int(event['o'].n)"}
	if bare {
		fields = append(fields, "n", "s", "b", "o.s", "list")
	}
	return pick(t, fields)
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func drawLiteral(t *rapid.T) string {
	switch rapid.IntRange(0, 9).Draw(t, "literal") {
	case 0:
		return pick(t, []string{"true", "false", "null", "2u"})
	case 1, 2, 3, 4:
		n := pick(t, sampleNumbers)
		if n == "-0" {
			n = "0"
		}
		return n
	}
	return quote(pick(t, sampleTexts))
}

var comparisons = []string{" < ", " <= ", " > ", " >= "}

// drawCondition draws an expression that is true or false; operand draws the values to compare.
func drawCondition(t *rapid.T, depth int, operand func() string) string {
	again := func() string { return drawCondition(t, depth-1, operand) }
	kinds := 14
	if depth > 0 {
		kinds = 20
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "condition") {
	case 0, 1:
		return operand() + pick(t, []string{" == ", " != "}) + operand()
	case 2, 3:
		return operand() + pick(t, comparisons) + operand()
	case 4:
		return fmt.Sprintf("contains_ci(%s, %s)", operand(), operand())
	case 5:
		return fmt.Sprintf("starts_with_ci(%s, %s)", operand(), quote(pick(t, sampleTexts)))
	case 6:
		return fmt.Sprintf("%s.%s(%s)", pick(t, []string{"event.s", "event.p", "event.o.s", "event.n"}), pick(t, []string{"contains", "startsWith", "endsWith"}), operand())
	case 7:
		return fmt.Sprintf("%s in [%s, %s, %s]", operand(), drawLiteral(t), drawLiteral(t), drawLiteral(t))
	case 8:
		return fmt.Sprintf("has(%s)", pick(t, []string{"event.n", "event.gone", "event.o.s", "event.o.gone", "event.gone.s", "event.s.x", "event.list.x"}))
	case 9:
		return pick(t, []string{
			"event.list.exists(x, x == 2)", "event.list.exists(x, x == 'a')", "event.list.exists(x, x in ['s', 'a'])", "event.list.exists(x, 'b' == x.s)",
			"event.o.exists(k, k == 's')", "event.list.exists(x, x.s in ['a'])", "event.s.exists(x, x == 'a')", "event.list.exists(x, x == null)",
			"event.list.all(x, x != 'a')", "size(event.list) > 1", "event.n + 1 > 2",
			"event.n * 2.0 >= event.m", "2 in event.list", "'s' in event.o", "event.list[0] == 1", "string(event.n) == '2'", "event.o == event.o",
			"event.list == [1, 2]", "event.s.size() > 2", "event['o'].s == 'a'", "int(event.n) % 2 == 0",
			"event.list.exists(event, event == 2)",
			"size(event['list']) == 2.0", "int(event.n) in [1, 2.0, 7]", "event['list'].exists(x, double(x['n']) > 1.0)", "string(event['n']) == '2'", "1 == 1.0", "has(event['o']['s'])", "event.list.exists(x, x in [1, 2.0])", "event.list.exists(s, s == 'a' && s != event.s)", "event.list.all(ce, ce != 1)",
		})
	case 10:
		return fmt.Sprintf("event.s.matches(%s)", quote(pick(t, []string{"^a", "(?i)van", "b$", ".*"})))
	case 11:
		return pick(t, []string{"event.b", "true", "false", "event.s == event.p"})
	case 12:
		return drawWithin(t, []string{"0", "2", "2.5", "89.5", "-179.5", "180", "95"}, []string{"0", "150", "20000", "-1"})
	case 13:
		if rapid.Bool().Draw(t, "of a time") {
			return drawTime(t)
		}
		return drawCrossing(t, operand())
	case 14, 15:
		return fmt.Sprintf("(%s && %s)", again(), again())
	case 16, 17:
		return fmt.Sprintf("(%s || %s)", again(), again())
	case 18:
		return fmt.Sprintf("!(%s)", again())
	}
	return fmt.Sprintf("(%s ? %s : %s)", again(), again(), again())
}

// drawWithin draws a geo.within; numbers draws its coordinates, distances its radius in km.
func drawWithin(t *rapid.T, numbers, distances []string) string {
	here, there := pick(t, []string{"event.o.n, event.m", "event.m, event.n"}), pick(t, numbers)+", "+pick(t, numbers)
	if rapid.Bool().Draw(t, "swapped") {
		here, there = there, here
	}
	return fmt.Sprintf("geo.within(%s, %s, %s)", here, there, pick(t, distances))
}

var sampleTimes = []string{"2026-01-31T23:30:00Z", "2026-02-01T00:30:00+01:00", "2026-07-01T12:00:00.25Z", "2024-02-29T06:00:00Z"}

// drawTime draws a condition on a time of the event, or on its attributes.
func drawTime(t *rapid.T) string {
	of := pick(t, []string{"ce.time", "timestamp(event.at)", "timestamp(event.s)"})
	switch rapid.IntRange(0, 4).Draw(t, "time") {
	case 0:
		return fmt.Sprintf("%s%stimestamp('%s')", of, pick(t, append([]string{" == "}, comparisons...)), pick(t, sampleTimes))
	case 1:
		return fmt.Sprintf("%s.%s(%s)%s%d", of, pick(t, []string{"getHours", "getDayOfWeek", "getDate", "getDayOfYear"}),
			pick(t, []string{"", "", "", "'Europe/Berlin'", "'America/Vancouver'", "'+02:00'"}), pick(t, append([]string{" == "}, comparisons...)), rapid.IntRange(0, 23).Draw(t, "part"))
	case 2:
		return fmt.Sprintf("ce.time - timestamp(event.at)%sduration('%s')", pick(t, comparisons), pick(t, []string{"0s", "1h", "-30m", "3600h"}))
	case 3:
		return pick(t, []string{"has(ce.subject)", "has(ce.time)", "has(ce.ext)", "has(ce.gone)", "!has(ce.subject)", "has(event.at)"})
	}
	return pick(t, []string{"ce.type.startsWith('a')", "ce.type == 'ab'", "ce.source in ['a', 'Vancouver']", "contains_ci(ce.subject, 'AN')", "ce.ext == 2", "ce.ext == true", "ce.id != ''"})
}

// drawCrossing draws a crossing of a level since the previous event.
func drawCrossing(t *rapid.T, level string) string {
	value := pick(t, []string{"event.n", "event.n", "event.m", "event['o'].n", "event.m * 2.0", "(event.n - event.m)", "event.gone"})
	return fmt.Sprintf("%s(%s, %s)", pick(t, []string{"crosses", "crosses_above", "crosses_below"}), value, level)
}

// drawFilter draws a filter: any CEL expression, or a realistic chain of predicates.
func drawFilter(t *rapid.T, bare bool) string {
	if rapid.Bool().Draw(t, "predicates") {
		return drawPredicates(t, bare)
	}
	return drawCondition(t, 2, func() string {
		if rapid.Bool().Draw(t, "field") {
			return drawField(t, bare)
		}
		return drawLiteral(t)
	})
}

func drawPredicates(t *rapid.T, bare bool) string {
	predicates := make([]string, rapid.IntRange(1, 4).Draw(t, "count"))
	for i := range predicates {
		predicates[i] = drawPredicate(t, bare)
	}
	return strings.Join(predicates, pick(t, []string{" && ", " && ", " && ", " || "}))
}

// drawAlike draws a filter with two equalities that many others share, and conjuncts that few
// share, so that only the pair of equalities is a selective guard. Some have a further text, or
// one of the two equalities twice.
func drawAlike(t *rapid.T, _ bool) string {
	text := func() string { return quote(pick(t, sampleTexts[1:4])) }
	number := func() string {
		return pick(t, []string{"event.n", "event.m", "event.o.n"}) + pick(t, append([]string{" != "}, comparisons...)) + pick(t, []string{"0", "2", "2.5", "-3"})
	}
	s := text()
	more := pick(t, []string{"", "", " && event.o.s == " + text(), " && event.s == " + s})
	return fmt.Sprintf("event.s == %s && %s && event.p == %s && %s", s, number(), text(), number()) + more
}

// drawPredicate draws a comparison of a field with a literal of its kind.
func drawPredicate(t *rapid.T, bare bool) string {
	number := func() string {
		return pick(t, []string{"0", "1", "2", "2.0", "2.5", "-3", "7", "9007199254740992", "9007199254740993"})
	}
	text := func() string { return quote(pick(t, sampleTexts)) }
	switch rapid.IntRange(0, 10).Draw(t, "predicate") {
	case 0:
		return pick(t, []string{"event.n", "event.m", "event.o.n"}) + pick(t, []string{" == ", " != "}) + number()
	case 1, 2:
		return pick(t, []string{"event.n", "event.m", "event.o.n"}) + pick(t, comparisons) + number()
	case 3:
		return drawField(t, bare) + " == " + text()
	case 4:
		return fmt.Sprintf("%s in [%s, %s]", pick(t, []string{"event.s", "event.p", "event.o.s"}), text(), text())
	case 5:
		return fmt.Sprintf("%s(%s, %s)", pick(t, []string{"contains_ci", "starts_with_ci"}), pick(t, []string{"event.s", "event.p", "event.o.s"}), text())
	case 6:
		field := pick(t, []string{"event.n", "event.m", "event.o.n"})
		return field + pick(t, []string{" > ", " >= "}) + number() + " && " + field + pick(t, []string{" < ", " <= "}) + number()
	case 7:
		return drawWithin(t, []string{"0", "1", "2", "2.5", "-3"}, []string{"0", "50", "150", "400.5"})
	case 8:
		return drawCrossing(t, number())
	case 9:
		return drawTime(t)
	}
	return fmt.Sprintf("(%s || %s)", drawPredicate(t, bare), drawPredicate(t, bare))
}

// redraw replaces the literals of a filter.
func redraw(t *rapid.T, filter string) string {
	tf, ok := lang.Tokenize(filter, nil)
	if !ok {
		return filter
	}
	var b strings.Builder
	for _, tok := range tf.Tokens {
		switch tok.Kind {
		case lang.KindString:
			tok.Text = quote(pick(t, sampleTexts))
		case lang.KindInt:
			tok.Text = pick(t, []string{"0", "1", "2", "-3", "7"})
		case lang.KindDouble:
			tok.Text = pick(t, []string{"2.0", "2.5", "5e0", "9007199254740992.0", "1e300", "-0.0"})
		}
		b.WriteString(tok.Text + " ")
	}
	return b.String()
}

// drawSchema draws the schema of a topic; "" for none.
func drawSchema(t *rapid.T) string {
	if oneIn(t, 4) {
		return ""
	}
	var fields []string
	for _, field := range []struct {
		name  string
		kinds []string
	}{
		{"n", []string{`{}`, `{"type":["number","null"]}`, `{"type":"integer"}`}},
		{"m", []string{`{}`, `{"type":"integer"}`, `{"type":"number"}`}},
		{"s", []string{`{}`, `{"type":"string"}`}},
		{"p", []string{`{}`, `{"type":["string","null"]}`}},
		{"b", []string{`{}`, `{"type":"boolean"}`}},
		{"o", []string{`{}`, `{"$ref":"#"}`, `{"type":"object"}`, `{"properties":{"n":{"type":"number"},"s":{"type":"string"},"o":{}}}`}},
		{"list", []string{`{}`, `{"type":"array"}`, `{"type":"array","items":{"type":"number"}}`, `{"type":"array","items":{"type":"object"}}`}},
	} {
		if !oneIn(t, 8) {
			fields = append(fields, quote(field.name)+":"+pick(t, field.kinds))
		}
	}
	more := pick(t, []string{`,"additionalProperties":true`, `,"additionalProperties":{}`, ``})
	return `{"type":"object","properties":{` + strings.Join(fields, ",") + `}` + more + `}`
}

// drawTopic draws a definition without rules; crossings need one with a key.
func drawTopic(t *rapid.T) Definition {
	return Definition{Schema: json.RawMessage(drawSchema(t)), Key: pick(t, []string{"", "s", "s"})}
}

// ruleParams are the params of every rule that is drawn.
func ruleParams() map[string]string {
	return map[string]string{"x": "number", "y": "number", "z": "string", "w": "string", "v": "boolean", "l": "strings"}
}

func drawRule(t *rapid.T, name string, bare bool) Rule {
	conjuncts := make([]string, pick(t, []int{1, 1, 2, 2, 3, 4}))
	for i := range conjuncts {
		conjuncts[i] = drawConjunct(t, bare)
	}
	return Rule{Name: name, Params: ruleParams(), When: strings.Join(conjuncts, " && ")}
}

// drawConjunct draws a conjunct of a rule.
func drawConjunct(t *rapid.T, bare bool) string {
	switch rapid.IntRange(0, 13).Draw(t, "conjunct") {
	case 0:
		return drawField(t, bare) + " == " + pick(t, []string{"sub.x", "sub.z", "sub.w", "sub.v", "sub.l"})
	case 1:
		return pick(t, []string{"sub.x", "sub.z", "sub.v"}) + " == " + drawField(t, bare)
	case 2, 3:
		return pick(t, []string{"event.n", "event.m", "event.o.n", "event.gone"}) + pick(t, comparisons) + pick(t, []string{"sub.x", "sub.y"})
	case 4:
		return pick(t, []string{"sub.x", "sub.z"}) + pick(t, comparisons) + pick(t, []string{"event.n", "event.m", "event.s"})
	case 5:
		if rapid.Bool().Draw(t, "text") {
			return pick(t, []string{"contains_ci(event.s, sub.z)", "contains_ci(event.p, sub.w)", "sub.l.exists(x, contains_ci(event.s, x))", "starts_with_ci(event.s, sub.z)", "event.s.contains(sub.w)"})
		}
		return pick(t, []string{"sub.w in event.list", "size(sub.z) < size(event.s)", "sub.v || event.b", "size(sub) == 6", "event.s.startsWith(sub.w)", "event.n + sub.x > 3.0",
			"ce.source == sub.z", "event.s + event.p == sub.z", "size(event.list) == sub.x", "event.n * 2.0 <= sub.y", "ce.ext == sub.x", "ce.ext == sub.v", "ce.time.getHours('Europe/Berlin') >= sub.x", drawTime(t)})
	case 6:
		return fmt.Sprintf("%s in sub.l", drawField(t, bare))
	case 7, 8, 9: // any of, all of, where they were asked for
		return pick(t, []string{
			"(size(sub.l) == 0 || event.s in sub.l)", "event.list.exists(x, x in sub.l)", "sub.l.all(x, x in event.list)",
			"sub.l.exists(x, contains_ci(event.s, x))", "sub.z in sub.l",
			"event.list.exists(o, o.s in sub.l)", "sub.l.all(x, event.list.exists(o, o.s == x))", "sub.l.exists(x, event.list.exists(x, x == x))",
			"event.o.exists(k, k in sub.l)", "sub.z in event.o", "(sub.v || sub.l.exists(x, event.s == x))", "sub.l.exists(x, x.size() > 1 && x in event.list)",
			"event.list.exists(o, sub.z == o.s)", "sub.l.exists(s, s == s)", "sub.l.exists(s, s == event.s)", "event.list.exists(sub, sub == 'a')", "sub.l.exists(event, event == sub.z)",
			"ce.subject in sub.l", "sub.l.exists(x, contains_ci(ce.source, x))", "(size(sub.l) > 1 && event.s in sub.l || sub.w in event.list && event.n > sub.x)", "!(event.p in sub.l) && size(sub.l) > 1", "sub.l == event.list",
		})
	case 10: // two-sided
		number := pick(t, []string{"event.n", "event.m", "event.o.n"})
		return number + pick(t, []string{" > ", " >= "}) + "sub.x && " + number + pick(t, []string{" < ", " <= "}) + "sub.y"
	case 11:
		return drawWithin(t, []string{"sub.x", "sub.y", "sub.y", "2.5"}, []string{"sub.x", "sub.y", "150", "20000"})
	case 12:
		return drawCrossing(t, pick(t, []string{"sub.x", "sub.y", "2.5", "event.m"}))
	}
	return drawCondition(t, 1, func() string {
		switch rapid.IntRange(0, 3).Draw(t, "operand") {
		case 0:
			return pick(t, []string{"sub.x", "sub.y", "sub.z", "sub.w", "sub.v", "sub['z']", "sub.l", "sub.l[0]"})
		case 1:
			return drawLiteral(t)
		}
		return drawField(t, bare)
	})
}

func drawParams(t *rapid.T) json.RawMessage {
	values := make([]string, rapid.IntRange(0, 3).Draw(t, "values"))
	for i := range values {
		values[i] = quote(pick(t, sampleTexts))
	}
	params := fmt.Sprintf(`{"l":[%s],"x":%s,"y":%s,"z":%s,"w":%s,"v":%s}`, strings.Join(values, ","), pick(t, sampleNumbers), pick(t, sampleNumbers),
		quote(pick(t, sampleTexts)), quote(pick(t, sampleTexts)), pick(t, []string{"true", "false"}))
	if oneIn(t, 20) { // said twice, the last one counts
		params = `{"x":5,"\u007a":"a",` + params[1:]
	}
	return json.RawMessage(params)
}
