package evaluator

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// document is the reference of the language. Its examples are tested here too.
const document = "../../../docs/reference/conditions.md"

// An example is one line of the document with the lines above it that apply to it.
type example struct {
	line                           int
	schema, event, ce, sub, before string
	want, text                     string
}

var (
	settingLine = regexp.MustCompile(`^(schema|event|ce|sub|before|key) +(.+)$`)
	resultLine  = regexp.MustCompile(`^(true|false|error|refused) +(.+?)( +// .*)?$`)
	tableRow    = regexp.MustCompile("^\\| `(.*?)` \\| `(.*?)` \\| (true|false|error) \\|")
)

func examples(t *testing.T) []example {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var all []example
	var at example
	inside := false
	for i, line := range strings.Split(string(text), "\n") {
		at.line = i + 1
		if strings.HasPrefix(line, "```") {
			inside = !inside
			at = example{}
			continue
		}
		if row := tableRow.FindStringSubmatch(line); row != nil {
			all = append(all, example{line: i + 1, event: row[1], text: row[2], want: row[3]})
		}
		if !inside {
			continue
		}
		if m := settingLine.FindStringSubmatch(line); m != nil {
			switch m[1] {
			case "schema":
				at.schema = m[2]
			case "event":
				at.event = m[2]
			case "ce":
				at.ce = m[2]
			case "sub":
				at.sub = m[2]
			case "before":
				at.before = m[2]
			}
		} else if m := resultLine.FindStringSubmatch(line); m != nil {
			at.want, at.text = m[1], m[2]
			all = append(all, at)
		}
	}
	return all
}

// attributesOf reads the CloudEvents attributes of an example.
func attributesOf(t *testing.T, text string) Attributes {
	t.Helper()
	var a Attributes
	if text == "" {
		return a
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	a.Extensions = map[string][]byte{}
	for name, v := range raw {
		var s string
		_ = json.Unmarshal(v, &s)
		switch name {
		case "id":
			a.ID = s
		case "source":
			a.Source = s
		case "type":
			a.Type = s
		case "subject":
			a.Subject = s
		case "time":
			at, err := time.Parse(time.RFC3339Nano, s)
			if err != nil {
				t.Fatal(err)
			}
			a.Time = at
		default:
			a.Extensions[name] = v
		}
	}
	return a
}

// paramTypesOf derives the types of params from their values.
func paramTypesOf(t *testing.T, text string) map[string]string {
	t.Helper()
	var raw map[string]any
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for name, v := range raw {
		switch v.(type) {
		case string:
			types[name] = "string"
		case bool:
			types[name] = "boolean"
		case float64:
			types[name] = "number"
		default:
			types[name] = "strings"
		}
	}
	return types
}

func TestDocumentedExamplesHold(t *testing.T) {
	all := examples(t)
	if len(all) < 80 {
		t.Fatalf("only %d examples found: the document has changed its form", len(all))
	}
	decided := 0
	for _, x := range all {
		if x.want == "refused" {
			continue // by the product, which knows the types
		}
		if strings.HasPrefix(x.text, "jmespath(") {
			continue // this evaluator does not know JMESPath: package jmespath is compared with another implementation
		}
		decided++
		topic, err := NewTopic([]byte(x.schema))
		if err != nil {
			t.Fatalf("line %d: %v", x.line, err)
		}
		var types map[string]string
		if x.sub != "" {
			types = paramTypesOf(t, x.sub)
		}
		c, err := topic.Condition(strings.ReplaceAll(x.text, `\|`, "|"), types)
		if err != nil {
			t.Errorf("line %d: %s: %v", x.line, x.text, err)
			continue
		}
		var p *Params
		if x.sub != "" {
			if p, err = c.Params([]byte(x.sub)); err != nil {
				t.Fatalf("line %d: %v", x.line, err)
			}
		}
		in, err := topic.Event(Event{Data: []byte(x.event), Was: []byte(x.before), Attributes: attributesOf(t, x.ce)})
		if err != nil {
			t.Fatalf("line %d: %v", x.line, err)
		}
		if got := c.Evaluate(in, p); got.Result.String() != x.want {
			t.Errorf("line %d: %s\nis %s (%s), documented as %s", x.line, x.text, got.Result, got.Reason, x.want)
		}
	}
	t.Logf("%d examples", decided)
}
