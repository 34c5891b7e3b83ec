package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A document is the OpenAPI document of a running server.
type document struct {
	t       *testing.T
	root    map[string]any
	schemas *jsonschema.Compiler
}

// An operation is one of a document.
type operation struct {
	id, method, path string
	spec             map[string]any
}

const documentURL = "http://fanfare.test/openapi.json"

// described reads the document of a server.
func described(s *server) *document {
	s.t.Helper()
	text := s.http.must(200, "GET", "/openapi.json", "", "")
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	d := &document{t: s.t, root: root.(map[string]any), schemas: jsonschema.NewCompiler()}
	d.schemas.DefaultDraft(jsonschema.Draft2020)
	d.schemas.AssertFormat()
	if err := d.schemas.AddResource(documentURL, root); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// operations lists all, by path and method.
func (d *document) operations() []operation {
	var all []operation
	paths := d.root["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		methods := paths[path].(map[string]any)
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			spec := methods[method].(map[string]any)
			all = append(all, operation{spec["operationId"].(string), strings.ToUpper(method), path, spec})
		}
	}
	return all
}

// at follows a JSON pointer, and the reference that it leads to.
func (d *document) at(pointer string) any {
	var v any = d.root
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		m, ok := v.(map[string]any)
		if !ok || m[name] == nil {
			return nil
		}
		v = m[name]
	}
	return v
}

func escaped(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// answered checks an answer against what the document says of it: its status,
// its media type, its headers and its body.
func (d *document) answered(op operation, status int, header http.Header, body string) error {
	pointer := "/paths/" + escaped(op.path) + "/" + strings.ToLower(op.method) + "/responses/" + strconv.Itoa(status)
	response, ok := d.at(pointer).(map[string]any)
	if !ok {
		return fmt.Errorf("the document has no answer %d", status)
	}
	if ref, ok := response["$ref"].(string); ok {
		pointer = strings.TrimPrefix(ref, "#")
		response = d.at(pointer).(map[string]any)
	}
	for name := range mapOf(response["headers"]) {
		if !strings.HasPrefix(name, "RateLimit") && header.Get(name) == "" && name != "Location" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	content := mapOf(response["content"])
	if len(content) == 0 {
		if body != "" {
			return fmt.Errorf("the document knows no body: %s", body)
		}
		return nil
	}
	mediaType, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	if content[mediaType] == nil {
		return fmt.Errorf("the document does not know the type %q", mediaType)
	}
	if !strings.HasSuffix(mediaType, "json") || mediaType == lines {
		return nil
	}
	schema, err := d.schemas.Compile(documentURL + "#" + pointer + "/content/" + escaped(mediaType) + "/schema")
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func mapOf(v any) map[string]any { m, _ := v.(map[string]any); return m }

// A sample is one example of the document.
type sample struct {
	op         operation
	Name       string            `json:"name"`
	Order      int               `json:"order"`
	Status     int               `json:"status"`
	Parameters map[string]string `json:"parameters"`
	MediaType  string            `json:"media_type"`
	body       string
}

// samples lists the examples of all operations in their order.
func (d *document) samples() []sample {
	d.t.Helper()
	var all []sample
	for _, op := range d.operations() {
		text, _ := json.Marshal(op.spec["x-examples"])
		for _, s := range into[[]sample](d.t, string(text)) {
			s.op = op
			if s.MediaType != "" {
				media := mapOf(mapOf(mapOf(op.spec["requestBody"])["content"])[s.MediaType])
				value, ok := mapOf(mapOf(media["examples"])[s.Name])["value"]
				if !ok {
					d.t.Errorf("%s: no body of type %s with the name %s", op.id, s.MediaType, s.Name)
				}
				if s.body, ok = value.(string); !ok {
					text, _ := json.Marshal(value)
					s.body = string(text)
				}
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b sample) int { return a.Order - b.Order })
	return all
}
