package condition

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/condition/expr"
)

// An example is one condition of docs/reference/conditions.md with its context.
type example struct {
	key, schema, before, event, ce, sub string
	result, condition, comment          string
}

// readExamples reads the blocks of text, and the table whose rows begin with an event.
func readExamples(t *testing.T) (list []example) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "conditions.md"))
	if err != nil {
		t.Fatal(err)
	}
	line, block, inside := regexp.MustCompile(`^(\w+)\s+(.*?)(?:\s+// (.*))?$`), example{}, false
	row := regexp.MustCompile("^\\| `(\\{.*?\\})` \\| `(.*?)` \\| (\\w+) \\|")
	for _, one := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(one, "```") {
			block, inside = example{}, one == "```text"
			continue
		}
		if found := row.FindStringSubmatch(one); found != nil {
			list = append(list, example{key: "x", event: found[1], condition: found[2], result: found[3]})
		}
		if !inside {
			continue
		}
		found := line.FindStringSubmatch(one)
		if found == nil {
			t.Fatalf("%q is no line of an example", one)
		}
		around := map[string]*string{"key": &block.key, "schema": &block.schema, "before": &block.before, "event": &block.event, "ce": &block.ce, "sub": &block.sub}
		if member := around[found[1]]; member != nil {
			*member = found[2]
			continue
		}
		block.result, block.condition, block.comment = found[1], found[2], found[3]
		list = append(list, block)
	}
	return list
}

// asEvent returns the event of an example.
func (e *example) asEvent(t *testing.T) Event {
	t.Helper()
	event := expr.Event{Data: json.RawMessage(e.event), Previous: json.RawMessage(e.before)}
	if e.ce == "" {
		return event
	}
	a := &event.Attributes
	if err := json.Unmarshal([]byte(e.ce), &a.Extensions); err != nil {
		t.Fatalf("%s: %v", e.ce, err)
	}
	for name, into := range map[string]any{"id": &a.ID, "source": &a.Source, "type": &a.Type, "subject": &a.Subject, "time": &a.Time} {
		if raw, ok := a.Extensions[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			delete(a.Extensions, name)
		}
	}
	return event
}

// entry returns the subscription of an example, and its topic.
func (e *example) entry(t *testing.T) (Definition, Entry) {
	t.Helper()
	def := Definition{Schema: json.RawMessage(e.schema), Key: e.key}
	if e.sub == "" {
		return def, Entry{Place: 1, Filter: e.condition}
	}
	var params map[string]any
	if err := json.Unmarshal([]byte(e.sub), &params); err != nil {
		t.Fatalf("%s: %v", e.sub, err)
	}
	types := map[string]string{}
	for name, v := range params {
		types[name] = map[bool]string{true: "number"}[isA[float64](v)] + map[bool]string{true: "string"}[isA[string](v)] + map[bool]string{true: "strings"}[isA[[]any](v)]
	}
	def.Rules = []Rule{{Name: "example", When: e.condition, Params: types}}
	return def, Entry{Place: 1, Rule: "example", Params: json.RawMessage(e.sub)}
}

func isA[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// The test compares the page with the index and with the explanation.
func TestTheExamplesOfTheDocumentation(t *testing.T) {
	list := readExamples(t)
	results := map[string]int{}
	for _, e := range list {
		results[e.result]++
		def, entry := e.entry(t)
		x, key := New(), Key{"docs", "example"}
		err := x.Define(key, def)
		if err == nil && entry.Filter != "" {
			err = x.CheckFilter(key, entry.Filter)
		}
		if e.result == "refused" {
			if err == nil || !strings.Contains(err.Error(), e.comment) {
				t.Errorf("%s: got %v, want %q", e.condition, err, e.comment)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", e.condition, err)
			continue
		}
		mustAdd(t, x, key, entry)
		event := e.asEvent(t)
		hits, err := x.Match(key, event, nil)
		if err != nil || len(hits) == 1 != (e.result == "true") {
			t.Errorf("%s on %s: %d hits, %v, want %s", e.condition, e.event, len(hits), err, e.result)
		}
		part, err := x.Explain(key, entry, event)
		if err != nil || part.Result != e.result {
			t.Errorf("%s on %s: explained as %s, %v, want %s", e.condition, e.event, part.Result, err, e.result)
		}
	}
	if len(list) < 80 || results["true"] < 40 || results["false"] < 15 || results["error"] < 10 || results["refused"] < 8 {
		t.Errorf("too few examples were found: %v", results)
	}
}
