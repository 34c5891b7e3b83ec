package httpapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

// An answered is a response of an operation according to the document.
type answered struct {
	Content map[string]struct {
		Schema json.RawMessage
	}
}

// answeredByLines are the responses that only NDJSON bodies get, with their own
// status; in the SDK, hand-written functions handle them (see sdk/narrow.py).
var answeredByLines = []string{"create-subscriber 200"}

// A function that is generated for an operation returns the union of all successful
// responses in the document, and its caller must distinguish them. Therefore no parameter
// changes the type of a response: that requires another operation.
func TestAnOperationHasOneAnswer(t *testing.T) {
	var text bytes.Buffer
	if err := WriteOpenAPI(&text, "test"); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string
			Responses   map[string]answered
		}
	}
	if err := json.Unmarshal(text.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	count, byLines := 0, []string{}
	for _, path := range document.Paths {
		for _, op := range path {
			count++
			answers := map[string][]string{} // what is answered -> under which status
			for status, r := range op.Responses {
				if name := op.OperationID + " " + status; slices.Contains(answeredByLines, name) {
					byLines = append(byLines, name)
				} else if strings.HasPrefix(status, "2") || status == "101" {
					answers[r.toJSON()] = append(answers[r.toJSON()], status)
				}
			}
			if len(answers) != 1 {
				t.Errorf("%s has %d different answers, by status %v: make an operation of each", op.OperationID, len(answers), answers)
			}
			for schema := range answers {
				if strings.Contains(schema, `"oneOf"`) || strings.Contains(schema, `"anyOf"`) {
					t.Errorf("%s answers one of several: %s", op.OperationID, schema)
				}
			}
		}
	}
	if count < 70 {
		t.Errorf("the document has %d operations", count)
	}
	if !slices.Equal(byLines, answeredByLines) {
		t.Errorf("by lines alone are answered %v, and not %v", byLines, answeredByLines)
	}
}

// toJSON returns the response to a body that is one JSON value, according to the schemas.
// If the operation also accepts lines, this is the first alternative; the others are
// responses to lines.
func (r answered) toJSON() string {
	_, lines := r.Content[httpio.NDJSON]
	if lines {
		var choice struct{ OneOf []json.RawMessage }
		schema := r.Content["application/json"].Schema
		if json.Unmarshal(schema, &choice) == nil && len(choice.OneOf) > 0 {
			schema = choice.OneOf[0]
		}
		return "application/json" + " " + compact(schema)
	}
	said := []string{}
	for _, mediaType := range slices.Sorted(maps.Keys(r.Content)) {
		said = append(said, mediaType+" "+compact(r.Content[mediaType].Schema))
	}
	return strings.Join(said, ", ")
}

func compact(schema []byte) string {
	var out bytes.Buffer
	_ = json.Compact(&out, schema) // it was read from JSON
	return out.String()
}
