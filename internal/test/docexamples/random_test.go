package docexamples

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A maker makes events that fit a schema.
type maker struct {
	random *rand.Rand
	root   map[string]any
}

// event makes the data of an event: with all fields that may be there, with none of
// them, or with some.
func (m *maker) event(t *testing.T) map[string]any {
	t.Helper()
	share := []float64{0, 0.5, 1}[m.random.IntN(3)]
	made, ok := m.value(t, m.root, share, 0).(map[string]any)
	if !ok {
		t.Fatalf("the schema %v is not of an object", m.root)
	}
	return made
}

func (m *maker) value(t *testing.T, schema map[string]any, share float64, depth int) any {
	t.Helper()
	known := []string{"$schema", "$id", "$defs", "title", "description", "examples", "default", "type", "properties", "required", "additionalProperties", "items",
		"enum", "const", "format", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "pattern", "$ref", "minItems"}
	for name := range schema {
		if !slices.Contains(known, name) {
			t.Fatalf("events cannot be made of a schema with %s: teach it to maker.value", name)
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		target := m.root
		for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			target = inner(target, name)
		}
		return m.value(t, target, share, depth+1)
	}
	if always, ok := schema["const"]; ok {
		return always
	}
	if values, ok := schema["enum"].([]any); ok {
		return values[m.random.IntN(len(values))]
	}
	kind := ""
	switch types := schema["type"].(type) {
	case string:
		kind = types
	case []any:
		kind = fmt.Sprint(types[m.random.IntN(len(types))])
	}
	switch kind {
	case "null":
		return nil
	case "boolean":
		return m.random.IntN(2) == 0
	case "integer", "number":
		return m.number(schema, kind)
	case "string":
		return m.text(schema)
	case "array":
		least := 0
		if n, ok := schema["minItems"].(float64); ok {
			least = int(n)
		}
		list := []any{}
		for range least + m.random.IntN(4) {
			list = append(list, m.value(t, inner(schema, "items"), share, depth+1))
		}
		return list
	case "object", "":
		return m.object(t, schema, share, depth)
	}
	t.Fatalf("there is no type %s", kind)
	return nil
}

func (m *maker) object(t *testing.T, schema map[string]any, share float64, depth int) map[string]any {
	t.Helper()
	required, _ := schema["required"].([]any)
	object := map[string]any{}
	properties := inner(schema, "properties")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if property, ok := properties[name].(map[string]any); ok && (slices.Contains(required, any(name)) || m.random.Float64() < share && depth < 8) {
			object[name] = m.value(t, property, share, depth+1)
		}
	}
	return object
}

func (m *maker) number(schema map[string]any, kind string) any {
	least, most := -1000.0, 1000.0
	if n, ok := schema["minimum"].(float64); ok {
		least, most = n, n+1000
	}
	if n, ok := schema["exclusiveMinimum"].(float64); ok {
		least, most = n+1, n+1000
	}
	if n, ok := schema["maximum"].(float64); ok {
		most = n
	}
	n := least + m.random.Float64()*(most-least)
	if kind == "integer" || m.random.IntN(3) == 0 {
		return float64(int(n))
	}
	return n
}

var words = []string{"", "Dover", "O'Brien & Sons", "<b>bold</b>", "{{ event }}", "地震", "İstanbul", "a\tb", "first\nsecond", "*not* _Markdown_ [x](y)", `"quoted"`, strings.Repeat("long ", 60)}

func (m *maker) text(schema map[string]any) string {
	at := time.Unix(m.random.Int64N(4_000_000_000), 0).UTC()
	switch schema["format"] {
	case "date-time":
		return at.Format(time.RFC3339)
	case "date":
		return at.Format(time.DateOnly)
	case "email":
		return fmt.Sprintf("person%d@example.org", m.random.IntN(1000))
	case "uri", "uri-reference":
		return fmt.Sprintf("https://example.org/%d", m.random.IntN(1000))
	}
	if pattern, ok := schema["pattern"].(string); ok {
		return map[string]string{"^/": "/page"}[pattern]
	}
	least, _ := schema["minLength"].(float64)
	most, bounded := schema["maxLength"].(float64)
	for {
		one := words[m.random.IntN(len(words))]
		if n := float64(len([]rune(one))); n >= least && (!bounded || n <= most) {
			return one
		}
	}
}

func inner(m map[string]any, name string) map[string]any {
	one, _ := m[name].(map[string]any)
	return one
}
