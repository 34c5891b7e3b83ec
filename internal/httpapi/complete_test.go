package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/httpapi/openapi"
)

// everyRoute returns the document with all endpoints enabled.
func everyRoute(t *testing.T) map[string]any {
	t.Helper()
	var text bytes.Buffer
	if err := WriteOpenAPI(&text, "test"); err != nil {
		t.Fatal(err)
	}
	var d map[string]any
	if err := json.Unmarshal(text.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheDocumentSaysWhatEverythingMeans(t *testing.T) {
	d := everyRoute(t)
	components := d["components"].(map[string]any)
	for name, schema := range components["schemas"].(map[string]any) {
		s := schema.(map[string]any)
		if s["description"] == nil {
			t.Errorf("schema %s is not described: add it to schemaMeanings", name)
		}
		members, _ := s["properties"].(map[string]any)
		for member, m := range members {
			if of := m.(map[string]any); of["description"] == nil && of["$ref"] == nil {
				t.Errorf("%s.%s is not described: give the field a doc tag, or add it to schemaMeanings", name, member)
			}
		}
	}
	tagged := map[string]bool{}
	for _, tag := range d["tags"].([]any) {
		tagged[tag.(map[string]any)["name"].(string)] = true
	}
	eachOperation(d, func(where string, op map[string]any) {
		for _, p := range list(op["parameters"]) {
			if p["description"] == nil || p["description"] == "" {
				t.Errorf("%s: parameter %s is not described", where, p["name"])
			}
			if p["in"] == "path" && p["example"] == nil {
				t.Errorf("%s: parameter %s has no example", where, p["name"])
			}
		}
		for _, tag := range op["tags"].([]any) {
			if !tagged[tag.(string)] {
				t.Errorf("%s: tag %s is not explained", where, tag)
			}
		}
		if op[openapi.ExamplesKey] == nil {
			t.Errorf("%s (%s) has no example: add one to samples", where, op["operationId"])
		}
	})
}

func TestTheDocumentHasEveryProblemThatARouteCanGive(t *testing.T) {
	eachOperation(everyRoute(t), func(where string, op map[string]any) {
		var want []string
		if op["security"] != nil {
			want = append(want, "401", "403", "404", "429")
		}
		if op["requestBody"] != nil {
			want = append(want, "413", "507")
		}
		responses := op["responses"].(map[string]any)
		for _, status := range append(want, "422", "500", "503", "default") {
			if responses[status] == nil {
				t.Errorf("%s: no answer %s", where, status)
			}
		}
	})
}

func TestSamplesNameWhatThereIs(t *testing.T) {
	var known []string
	eachOperation(everyRoute(t), func(_ string, op map[string]any) { known = append(known, op["operationId"].(string)) })
	for _, s := range openapi.ExampleOperations() {
		if !slices.Contains(known, s) {
			t.Errorf("a sample is for %s, which is no operation", s)
		}
	}
}

func eachOperation(d map[string]any, visit func(where string, op map[string]any)) {
	for path, methods := range d["paths"].(map[string]any) {
		for method, op := range methods.(map[string]any) {
			visit(fmt.Sprint(strings.ToUpper(method), " ", path), op.(map[string]any))
		}
	}
}

func list(v any) []map[string]any {
	var all []map[string]any
	members, _ := v.([]any)
	for _, m := range members {
		all = append(all, m.(map[string]any))
	}
	return all
}
