package match

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
)

// naive evaluates a condition the slow and sure way: the whole expression by
// cel-go, for one subscription.
func naive(t interface{ Fatalf(string, ...any) }, sc *scope, text string, data any, sub map[string]any) bool {
	checked, issues := sc.env.Compile(text)
	if issues.Err() != nil {
		t.Fatalf("oracle: %q: %v", text, issues.Err())
	}
	p, err := sc.env.Program(checked, cel.CostLimit(maxCost))
	if err != nil {
		t.Fatalf("oracle: %q: %v", text, err)
	}
	vars := map[string]any{}
	if m, ok := data.(map[string]any); ok {
		for name, v := range m {
			vars[name] = v
		}
	}
	vars["event"] = data
	if sub != nil {
		vars["sub"] = sub
	}
	out, _, err := p.Eval(vars)
	return err == nil && out == types.True
}

var (
	sampleTexts   = []string{"", "a", "Vancouver", "vancouver island", "VICTORIA", "K\u212a", "\u03a3\u03c2", "\u0130stanbul", "stra\u00dfe", "ab"}
	sampleNumbers = []string{"0", "-0", "1", "2", "2.0", "2.5", "-3", "5e0", "9007199254740993", "9007199254740992.0", "1e300", "7"}
)

func pick[T any](t *rapid.T, from []T) T { return rapid.SampledFrom(from).Draw(t, "pick") }

// drawField draws a way to name something in the event.
func drawField(t *rapid.T, bare bool) string {
	fields := []string{"event.n", "event.m", "event.s", "event.p", "event.b", "event.o.n", "event.o.s", "event.o.o.s", "event['s']", "event.list", "event.gone"}
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

// drawCondition draws an expression that is true or false; operand draws what
// is compared.
func drawCondition(t *rapid.T, depth int, operand func() string) string {
	again := func() string { return drawCondition(t, depth-1, operand) }
	kinds := 12
	if depth > 0 {
		kinds = 18
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "condition") {
	case 0, 1:
		return operand() + pick(t, []string{" == ", " != "}) + operand()
	case 2, 3:
		return operand() + pick(t, []string{" < ", " <= ", " > ", " >= "}) + operand()
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
			"event.list.exists(x, x == 2)", "event.list.all(x, x != 'a')", "size(event.list) > 1", "event.n + 1 > 2",
			"event.n * 2.0 >= event.m", "2 in event.list", "'s' in event.o", "event.list[0] == 1", "string(event.n) == '2'", "event.o == event.o",
			"event.list == [1, 2]", "event.s.size() > 2", "event['o'].s == 'a'", "int(event.n) % 2 == 0",
		})
	case 10:
		return fmt.Sprintf("event.s.matches(%s)", quote(pick(t, []string{"^a", "(?i)van", "b$", ".*"})))
	case 11:
		return pick(t, []string{"event.b", "true", "false", "event.s == event.p"})
	case 12, 13:
		return fmt.Sprintf("(%s && %s)", again(), again())
	case 14, 15:
		return fmt.Sprintf("(%s || %s)", again(), again())
	case 16:
		return fmt.Sprintf("!(%s)", again())
	}
	return fmt.Sprintf("(%s ? %s : %s)", again(), again(), again())
}

func drawValue(t *rapid.T, depth int) string {
	kinds := 5
	if depth > 0 {
		kinds = 8
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "value") {
	case 0:
		return "null"
	case 1:
		return pick(t, []string{"true", "false"})
	case 2, 3:
		return pick(t, sampleNumbers)
	case 4:
		return quote(pick(t, sampleTexts))
	case 5:
		return "[" + drawValue(t, depth-1) + "," + drawValue(t, depth-1) + "]"
	}
	return drawObject(t, depth-1)
}

func drawObject(t *rapid.T, depth int) string {
	var members []string
	for _, name := range []string{"n", "m", "s", "p", "b", "o", "list"} {
		var v string
		switch {
		case rapid.IntRange(0, 9).Draw(t, "missing") == 0:
			continue
		case rapid.IntRange(0, 9).Draw(t, "odd") == 0:
			v = drawValue(t, depth)
		case name == "n" || name == "m":
			v = pick(t, sampleNumbers)
		case name == "s" || name == "p":
			v = quote(pick(t, sampleTexts))
		case name == "b":
			v = pick(t, []string{"true", "false"})
		case name == "list":
			v = pick(t, []string{"[1,2]", "[]", `["a","ab"]`, `["Vancouver","a",""]`, `["a",2]`})
		case name == "o" && depth > 0:
			v = drawObject(t, depth-1)
		default:
			v = "{}"
		}
		members = append(members, quote(name)+":"+v)
	}
	return "{" + strings.Join(members, ",") + "}"
}

var schemas = []string{
	"",
	`{"type":"object","additionalProperties":true,"properties":{"n":{},"s":{},"b":{},"o":{},"list":{"type":"array"}}}`,
	`{"additionalProperties":{},"properties":{"n":{"type":["number","null"]},"m":{"type":"integer"},"s":{"type":"string"},"b":{"type":"boolean"},"o":{"$ref":"#"},"list":{"type":"array","items":{"type":"number"}}}}`,
}

// model is the naive counterpart of an index with one topic.
type model struct {
	def     Definition
	entries map[fanfare.Place]Entry
}

func (m *model) match(t *rapid.T, c *compiledTopic, data string) []Hit {
	event, err := decode(json.RawMessage(data), c.filters.event)
	if err != nil {
		t.Fatalf("decode %s: %v", data, err)
	}
	hits := []Hit{}
	for place, e := range m.entries {
		ok, number := e.Filter == "" && e.Rule == "", -1
		if e.Filter != "" {
			ok = naive(t, c.filters, e.Filter, event, nil)
		}
		if e.Rule != "" {
			number = c.rule(e.Rule)
			var sub map[string]any
			if err := json.Unmarshal(e.Params, &sub); err != nil {
				t.Fatalf("params: %v", err)
			}
			ok = naive(t, c.rules[number], m.def.Rules[number].When, event, sub)
		}
		if ok {
			hits = append(hits, Hit{Place: place, Subscriber: e.Subscriber, Channel: e.Channel, Rule: int16(number)})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int { return int(int64(a.Place) - int64(b.Place)) })
	return hits
}

func drawRule(t *rapid.T, name string, bare bool) Rule {
	r := Rule{Name: name, Params: map[string]string{"x": "number", "y": "number", "z": "string", "w": "string", "v": "boolean", "l": "strings"}}
	operand := func() string {
		switch rapid.IntRange(0, 3).Draw(t, "operand") {
		case 0:
			return pick(t, []string{"sub.x", "sub.y", "sub.z", "sub.w", "sub.v", "sub['z']", "sub.l", "sub.l[0]"})
		case 1:
			return drawLiteral(t)
		}
		return drawField(t, bare)
	}
	conjuncts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 8).Draw(t, "conjunct") {
		case 0:
			return drawField(t, bare) + " == " + pick(t, []string{"sub.x", "sub.z", "sub.w", "sub.v", "sub.l"})
		case 1:
			return pick(t, []string{"sub.x", "sub.z", "sub.v"}) + " == " + drawField(t, bare)
		case 2, 3:
			return pick(t, []string{"event.n", "event.m", "event.o.n", "event.gone"}) + pick(t, []string{" < ", " <= ", " > ", " >= "}) + pick(t, []string{"sub.x", "sub.y"})
		case 4:
			return pick(t, []string{"sub.x", "sub.z"}) + pick(t, []string{" < ", " <= ", " > ", " >= "}) + pick(t, []string{"event.n", "event.m", "event.s"})
		case 5:
			return pick(t, []string{"contains_ci(event.s, sub.z)", "sub.w in event.list", "size(sub.z) < size(event.s)", "sub.v || event.b", "size(sub) == 6", "event.s.startsWith(sub.w)", "event.n + sub.x > 3.0"})
		case 6:
			return fmt.Sprintf("%s in sub.l", drawField(t, bare))
		case 7: // any of, all of, where they were asked for
			return pick(t, []string{
				"(size(sub.l) == 0 || event.s in sub.l)", "event.list.exists(x, x in sub.l)", "sub.l.all(x, x in event.list)",
				"sub.l.exists(x, contains_ci(event.s, x))", "sub.z in sub.l", "!(event.p in sub.l) && size(sub.l) > 1", "sub.l == event.list",
			})
		}
		return drawCondition(t, 1, operand)
	}), 1, 4).Draw(t, "conjuncts")
	r.When = strings.Join(conjuncts, " && ")
	return r
}

func drawParams(t *rapid.T) json.RawMessage {
	list := "[]"
	if n := rapid.IntRange(0, 3).Draw(t, "values"); n > 0 {
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return quote(pick(t, sampleTexts)) }), n, n).Draw(t, "list")
		list = "[" + strings.Join(values, ",") + "]"
	}
	return json.RawMessage(fmt.Sprintf(`{"l":%s,"x":%s,"y":%s,"z":%s,"w":%s,"v":%s}`, list, pick(t, sampleNumbers), pick(t, sampleNumbers),
		quote(pick(t, sampleTexts)), quote(pick(t, sampleTexts)), pick(t, []string{"true", "false"})))
}

// TestHitsAreThoseOfNaiveEvaluation drives an index through random definitions,
// additions, replacements, removals, redefinitions and events, and compares the
// complete hits with cel-go's opinion on every condition after every event.
func TestHitsAreThoseOfNaiveEvaluation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := pick(t, schemas)
		bare := schema != ""
		x, key := New(), Key{"svc", "topic"}
		compiles := func(def Definition) bool { return x.Check(def) == nil }
		var def Definition
		def.Schema = json.RawMessage(schema)
		for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
			def.Rules = append(def.Rules, rapid.Custom(func(t *rapid.T) Rule { return drawRule(t, fmt.Sprint("r", i), bare) }).
				Filter(func(r Rule) bool { return compiles(Definition{def.Schema, []Rule{r}}) }).Draw(t, "rule"))
		}
		if err := x.Define(key, def); err != nil {
			t.Fatalf("define: %v", err)
		}
		drawFilter := rapid.Custom(func(t *rapid.T) string {
			return drawCondition(t, 2, func() string {
				if rapid.Bool().Draw(t, "field") {
					return drawField(t, bare)
				}
				return drawLiteral(t)
			})
		}).Filter(func(text string) bool { return x.CheckFilter(key, text) == nil })

		m := &model{def: def, entries: map[fanfare.Place]Entry{}}
		compiled := x.topics[key].compile.Load()
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				var entries []Entry
				for range rapid.IntRange(1, 12).Draw(t, "entries") {
					place := fanfare.NewPlace(rapid.IntRange(0, 2).Draw(t, "partition"), rapid.Uint32Range(0, 20).Draw(t, "local"))
					e := Entry{Place: place, Subscriber: place / 2, Channel: uint16(place % 7)}
					switch rapid.IntRange(0, 5).Draw(t, "kind") {
					case 0:
					case 1, 2:
						e.Filter = drawFilter.Draw(t, "filter")
					default:
						e.Rule, e.Params = pick(t, m.def.Rules).Name, drawParams(t)
					}
					entries = append(entries, e)
				}
				if err := x.Add(key, entries); err != nil {
					t.Fatalf("add: %v", err)
				}
				for _, e := range entries {
					m.entries[e.Place] = e
				}
			},
			"remove": func(t *rapid.T) {
				for range 4 {
					place := fanfare.NewPlace(rapid.IntRange(0, 2).Draw(t, "partition"), rapid.Uint32Range(0, 20).Draw(t, "local"))
					x.Remove(key, place)
					delete(m.entries, place)
				}
			},
			"redefine": func(t *rapid.T) {
				def := Definition{Schema: m.def.Schema, Rules: slices.Clone(m.def.Rules)}
				slices.Reverse(def.Rules)
				i := rapid.IntRange(0, len(def.Rules)-1).Draw(t, "rule")
				r := drawRule(t, def.Rules[i].Name, bare)
				if !compiles(Definition{def.Schema, []Rule{r}}) {
					return
				}
				def.Rules[i] = r
				if err := x.Define(key, def); err != nil {
					t.Fatalf("redefine: %v", err)
				}
				m.def, compiled = def, x.topics[key].compile.Load()
			},
			"": func(t *rapid.T) {
				data := drawObject(t, 2)
				if rapid.IntRange(0, 30).Draw(t, "scalar") == 0 {
					data = drawValue(t, 1)
				}
				got, err := x.Match(key, json.RawMessage(data), []Hit{})
				if err != nil {
					t.Fatalf("match: %v", err)
				}
				if want := m.match(t, compiled, data); !slices.Equal(got, want) {
					for _, e := range m.entries {
						t.Logf("%+v params %s", e, e.Params)
					}
					t.Fatalf("event %s, rules %+v\n got %v\nwant %v", data, m.def.Rules, got, want)
				}
				if x.Len(key) != len(m.entries) {
					t.Fatalf("Len is %d, want %d", x.Len(key), len(m.entries))
				}
			},
		})
	})
}
