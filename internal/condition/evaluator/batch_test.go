package evaluator

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// ruleParams are the params of the generated rules, and some values.
var ruleParams = map[string]string{"level": "number", "word": "string", "words": "strings", "flag": "boolean"}

func (g *generator) paramsText() string {
	var o object
	o.add("level", g.json("double", 1))
	o.add("word", g.json("string", 1))
	o.add("words", g.json("strings", 1))
	o.add("flag", g.json("bool", 1))
	return o.String()
}

// schemas are JSON schemas for the generated topics.
var schemas = []string{"",
	`{"properties":{"n":{"type":"integer"},"m":{"type":"number"},"d":{"type":["number","null"]},"l":{"items":{"type":"number"}},"o":{"properties":{"a":{"type":"integer"}}}}}`}

func (g *generator) inputs(t testing.TB, topic *Topic, n int) []*Input {
	t.Helper()
	var inputs []*Input
	for range n {
		e := Event{Data: []byte(g.event()), Attributes: attributes}
		if g.chance(2) {
			e.Was = []byte(g.event())
		}
		if g.chance(30) {
			e.Data = []byte(g.large())
		}
		in, err := topic.Event(e)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, in)
	}
	return inputs
}

// large generates data with long texts and lists.
func (g *generator) large() string {
	var o object
	o.add("s", jsonText(strings.Repeat(g.one("a", "ab", "é"), g.IntN(20_000))))
	o.add("t", jsonText(strings.Repeat(g.one("a", "b"), g.IntN(2_000))))
	numbers := strings.Repeat("1,2,3,", g.IntN(1_500)) + "4"
	o.add("l", "["+numbers+"]")
	o.add("ls", `["`+strings.Repeat(`a","`, g.IntN(500))+`b"]`)
	o.add("os", "["+strings.Repeat(`{"a":1,"k":"x"},`, g.IntN(100))+"{}]")
	o.add("n", g.json("int", 1))
	o.add("o", g.json("map", 2))
	return o.String()
}

func bit(set []uint64, i int) bool { return set[i/64]&(1<<(i%64)) != 0 }

// batchResult returns the result of a batch for event i.
func batchResult(t testing.TB, i int, sets ...[]uint64) Result {
	t.Helper()
	result, found := False, 0
	for r, set := range sets {
		if bit(set, i) {
			result = True + Result(r)
			found++
		}
	}
	if found > 1 {
		t.Errorf("event %d has %d results", i, found)
	}
	return result
}

func TestABatchAgreesWithSingleEvaluations(t *testing.T) {
	g := newGenerator(*seed)
	g.own = true
	var count comparison
	start := time.Now()
	for round := range max(1, *cases/100) {
		topic, err := NewTopic([]byte(schemas[round%len(schemas)]))
		if err != nil {
			t.Fatal(err)
		}
		inputs := g.inputs(t, topic, 1+g.IntN(140))
		batch := NewBatch(topic, inputs)
		if g.chance(4) {
			batch.limit = 20_000 // so that results are forgotten
		}
		for range 50 {
			var params map[string]string
			if g.params = g.chance(2); g.params {
				params = ruleParams
			}
			text := g.condition()
			c, err := topic.Condition(text, params)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for range 2 {
				var p *Params
				if g.params {
					if p, err = c.Params([]byte(g.paramsText())); err != nil {
						t.Fatal(err)
					}
				}
				true_, error_, undecided := batch.Evaluate(c, p)
				for i, in := range inputs {
					want := c.Evaluate(in, p)
					count.add(want.Result)
					if got := batchResult(t, i, true_, error_, undecided); got != want.Result {
						t.Fatalf("%s\nof event %d is %s, in a batch %s", text, i, want.Result, got)
					}
				}
			}
		}
	}
	t.Logf("%+v in %v", count, time.Since(start))
}

// filters returns n realistic conditions, many of which share parts.
func (g *generator) filters(n int) []string {
	part := func() string {
		switch g.IntN(12) {
		case 0, 1, 2:
			return fmt.Sprintf("event.region == 'region-%d'", g.IntN(60))
		case 3:
			return fmt.Sprintf("event.kind in ['kind-%d', 'kind-%d']", g.IntN(20), g.IntN(20))
		case 4, 5:
			return fmt.Sprintf("event.price %s %d.5", g.one(">=", "<"), g.IntN(200))
		case 6:
			return fmt.Sprintf("event.size > %d", g.IntN(50))
		case 7:
			return fmt.Sprintf("contains_ci(event.title, 'word%d')", g.IntN(200))
		case 8:
			return fmt.Sprintf("'tag-%d' in event.tags", g.IntN(50))
		case 9:
			return fmt.Sprintf("event.tags.exists(t, t in ['tag-%d', 'tag-%d'])", g.IntN(50), g.IntN(50))
		case 10:
			return fmt.Sprintf("has(event.extra) && event.extra != %d", g.IntN(9))
		default:
			return fmt.Sprintf("event.title.startsWith('Word%d')", g.IntN(100))
		}
	}
	var all []string
	for range n {
		parts := []string{part()}
		for len(parts) < 5 && !g.chance(3) {
			parts = append(parts, part())
		}
		all = append(all, strings.Join(parts, g.one(" && ", " && ", " || ")))
	}
	return all
}

func (g *generator) notices(n int) [][]byte {
	var all [][]byte
	for range n {
		var words, tags []string
		for range 5 {
			words = append(words, fmt.Sprintf("%s%d", g.one("Word", "word", "WORD"), g.IntN(200)))
		}
		for range 1 + g.IntN(5) {
			tags = append(tags, fmt.Sprintf(`"tag-%d"`, g.IntN(50)))
		}
		var o object
		o.add("region", fmt.Sprintf(`"region-%d"`, g.IntN(60)))
		o.add("kind", fmt.Sprintf(`"kind-%d"`, g.IntN(20)))
		o.add("price", fmt.Sprintf("%d.%d", g.IntN(200), g.IntN(10)))
		o.add("size", fmt.Sprint(g.IntN(50)))
		o.add("title", jsonText(strings.Join(words, " ")))
		o.add("tags", "["+strings.Join(tags, ",")+"]")
		if g.chance(2) {
			o.add("extra", fmt.Sprint(g.IntN(9)))
		}
		all = append(all, []byte(o.String()))
	}
	return all
}

func BenchmarkBatch(b *testing.B) {
	for _, events := range []int{256, 1024, 4096} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			g, topic := newGenerator(1), &Topic{}
			var conditions []*Condition
			for _, text := range g.filters(10_000) {
				c, err := topic.Condition(text, nil)
				if err != nil {
					b.Fatal(err)
				}
				conditions = append(conditions, c)
			}
			var inputs []*Input
			for _, data := range g.notices(events) {
				in, err := topic.Event(Event{Data: data})
				if err != nil {
					b.Fatal(err)
				}
				inputs = append(inputs, in)
			}
			b.ResetTimer()
			pairs := 0
			for b.Loop() {
				batch := NewBatch(topic, inputs)
				for _, c := range conditions {
					batch.Evaluate(c, nil)
				}
				pairs += len(conditions) * events
			}
			b.ReportMetric(float64(pairs)/b.Elapsed().Seconds()/1e6, "Mpairs/s")
		})
	}
}

// BenchmarkBatchWithoutSharing has different params for each condition, so that conditions share
// only the fields.
func BenchmarkBatchWithoutSharing(b *testing.B) {
	g, topic := newGenerator(1), &Topic{}
	c, err := topic.Condition("event.region == sub.word && event.price >= sub.level && contains_ci(event.title, sub.title)",
		map[string]string{"word": "string", "level": "number", "title": "string"})
	if err != nil {
		b.Fatal(err)
	}
	var params []*Params
	for i := range 1000 {
		p, err := c.Params(fmt.Appendf(nil, `{"word":"region-%d","level":%d.25,"title":"word %d"}`, i, i, i))
		if err != nil {
			b.Fatal(err)
		}
		params = append(params, p)
	}
	var inputs []*Input
	for _, data := range g.notices(1024) {
		in, err := topic.Event(Event{Data: data})
		if err != nil {
			b.Fatal(err)
		}
		inputs = append(inputs, in)
	}
	b.ResetTimer()
	pairs := 0
	for b.Loop() {
		batch := NewBatch(topic, inputs)
		for _, p := range params {
			batch.Evaluate(c, p)
		}
		pairs += len(params) * len(inputs)
	}
	b.ReportMetric(float64(pairs)/b.Elapsed().Seconds()/1e6, "Mpairs/s")
}

func BenchmarkEvaluate(b *testing.B) {
	g, topic := newGenerator(1), &Topic{}
	c, err := topic.Condition("event.region == 'region-1' || event.price >= 100.5 && contains_ci(event.title, 'word7')", nil)
	if err != nil {
		b.Fatal(err)
	}
	in, err := topic.Event(Event{Data: g.notices(1)[0]})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Evaluate(in, nil)
	}
}

func BenchmarkCondition(b *testing.B) {
	topic := &Topic{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := topic.Condition("event.region == 'region-1' || event.price >= 100.5 && contains_ci(event.title, 'word7')", nil); err != nil {
			b.Fatal(err)
		}
	}
}
