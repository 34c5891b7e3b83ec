package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const earthquakes = "../../examples/earthquakes"

// document is the part of fanfare.yaml that this test needs.
type document struct {
	Topics map[string]struct {
		SchemaFile string `yaml:"schema_file"`
		Template   string
		Rules      []struct {
			Name, When, Template string
			Params               map[string]string
		}
	}
	Templates map[string]struct {
		Subject  string
		TextFile string `yaml:"text_file"`
		HTMLFile string `yaml:"html_file"`
	}
}

func readExample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(earthquakes, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEarthquakesMatchTheSchema(t *testing.T) {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(readExample(t, "schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("schema.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for s := bufio.NewScanner(bytes.NewReader(readExample(t, "earthquakes.ndjson"))); s.Scan(); n++ {
		event, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(event); err != nil {
			t.Errorf("line %d: %v", n+1, err)
		}
	}
	if n != 1707 {
		t.Errorf("%d events, want 1707", n)
	}
}

func TestMailsOfTheEarthquakeExample(t *testing.T) {
	var doc document
	if err := yaml.Unmarshal(readExample(t, "fanfare.yaml"), &doc); err != nil {
		t.Fatal(err)
	}
	topic := doc.Topics["earthquake"]
	schema := json.RawMessage(readExample(t, topic.SchemaFile))
	templates := map[string]*Template{}
	for name, src := range doc.Templates {
		template, err := Compile(Source{Name: name, Subject: src.Subject,
			Text: string(readExample(t, src.TextFile)), HTML: string(readExample(t, src.HTMLFile))})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := template.DryRun(schema); err != nil {
			t.Error(err)
		}
		for _, p := range template.parts() {
			if !p.Split {
				t.Errorf("%s: %s is rendered anew for each person", name, p.Name)
			}
			for _, piece := range p.Slots {
				if piece.Program != nil {
					t.Errorf("%s: %s needs Liquid for each person", name, p.Name)
				}
			}
		}
		templates[name] = template
	}
	for _, rule := range topic.Rules {
		name := rule.Template
		if name == "" {
			name = topic.Template
		}
		params := []string{}
		for p := range rule.Params {
			params = append(params, p)
		}
		if err := templates[name].Check(schema, params); err != nil {
			t.Errorf("rule %s: %v", rule.Name, err)
		}
	}
	events := bytes.Split(bytes.TrimSpace(readExample(t, "earthquakes.ndjson")), []byte("\n"))
	r := newRecipient()
	r.Subscriptions[0].Params = json.RawMessage(`{"min_mag":4.5,"place":", CA","lat":34.05,"lon":-118.24,"km":150}`)
	for name, template := range templates {
		for i, data := range events {
			m := newMailing(t, Source{Text: "x"}, "{}")
			m.Template, m.Event.Data = template, data
			m.From = mail.Address{Name: "Earthquake Watch", Address: "quakes@example.org"}
			message := write(t, m, r)
			p := parse(t, message.Body)
			for _, part := range p.parts {
				if !strings.Contains(part, "https://example.org/u/person-1") {
					t.Fatalf("%s, line %d: no way to unsubscribe", name, i+1)
				}
			}
			if i == 2 {
				golden(t, name, message.Body)
			}
		}
	}
}
