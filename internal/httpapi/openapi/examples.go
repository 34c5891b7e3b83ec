package openapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// An example is one request in the document. A test sends all of them to a real server, in
// the order of the list.
type example struct {
	operation string
	parameter map[string]string // path and query parameters, except those that every operation has
	mediaType string
	body      string
	status    int // of the response
}

// ExamplesKey is the extension that contains the samples of an operation.
const ExamplesKey = "x-examples"

// parameterExample returns the example of a parameter, which is the same in all operations.
func parameterExample(name string) any {
	switch name {
	case "service":
		return "ops"
	case "limit":
		return 100
	}
	return nil
}

// addExamples adds the samples to the document: their bodies to the media
// types, their parameters to the parameters, and the complete samples as an extension.
func addExamples(doc *huma.OpenAPI) {
	ops := map[string]*huma.Operation{}
	for _, path := range doc.Paths {
		for _, op := range operations(path) {
			ops[op.OperationID] = op
		}
	}
	for i, s := range examples() {
		op := ops[s.operation]
		if op == nil {
			continue // its endpoint is disabled
		}
		name := "example" + string(rune('A'+len(examplesOf(op))))
		entry := map[string]any{"name": name, "order": i, "status": s.status}
		if len(s.parameter) > 0 {
			entry["parameters"] = s.parameter
		}
		if s.mediaType != "" {
			entry["media_type"] = s.mediaType
			if media := op.RequestBody.Content[s.mediaType]; media != nil {
				if media.Examples == nil {
					media.Examples = map[string]*huma.Example{}
				}
				media.Examples[name] = &huma.Example{Value: exampleBody(s)}
			}
		}
		for _, p := range op.Parameters {
			if value, ok := s.parameter[p.Name]; ok && p.Example == nil {
				p.Example = typed(value, p.Schema)
			}
		}
		if op.Extensions == nil {
			op.Extensions = map[string]any{}
		}
		op.Extensions[ExamplesKey] = append(examplesOf(op), entry)
	}
}

// typed converts the text of a parameter to a value of its schema.
func typed(text string, s *huma.Schema) any {
	var v any
	if s != nil && s.Type != huma.TypeString && json.Unmarshal([]byte(text), &v) == nil {
		return v
	}
	return text
}

func examplesOf(op *huma.Operation) []map[string]any {
	list, _ := op.Extensions[ExamplesKey].([]map[string]any)
	return list
}

// exampleBody returns a JSON body as a value, and any other body as text.
func exampleBody(s example) any {
	if strings.HasSuffix(s.mediaType, "json") && s.mediaType != httpio.NDJSON {
		var v any
		if json.Unmarshal([]byte(s.body), &v) == nil {
			return v
		}
	}
	return s.body
}

// with returns parameters from alternating names and values.
func with(pairs ...string) map[string]string {
	m := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		m[pair[0]] = pair[1]
	}
	return m
}

// ExampleOperations returns the ids of the operations that have examples.
func ExampleOperations() (ids []string) {
	for _, s := range examples() {
		ids = append(ids, s.operation)
	}
	return ids
}
