package docexamples

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// merge puts what over says into under, member by member, and returns it. A channel
// and a template that is whole takes the place of the one before.
func merge(under, over map[string]any) map[string]any {
	for name, value := range over {
		inner, isMap := value.(map[string]any)
		isWhole := inner["driver"] != nil || inner["subject"] != nil
		if old, both := under[name].(map[string]any); isMap && both && !isWhole {
			under[name] = merge(old, inner)
			continue
		}
		under[name] = value
	}
	return under
}

func parseYAML(t *testing.T, where, text string) map[string]any {
	t.Helper()
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	return parsed
}

// whole gives a part of a document that begins further in the lines around it: those
// of the document before it on the page.
func whole(part, before string) string {
	indent := len(part) - len(strings.TrimLeft(part, " "))
	around := make([]string, 0, 2)
	lines := strings.Split(before, "\n")
	for at := indent; at > 0; at -= 2 {
		for i, line := range slices.Backward(lines) {
			if inner := strings.TrimLeft(line, " "); len(line)-len(inner) == at-2 && strings.HasSuffix(inner, ":") {
				around = append(around, line)
				lines = lines[:i]
				break
			}
		}
	}
	slices.Reverse(around)
	return strings.Join(append(around, part), "\n")
}

// shares of a document that are about how quickly something leaves, and would hold
// up those whom the test itself writes to.
var holding = []string{"hold_above"}

func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// trial is the channel by which the test sends, so that those of the example may be
// slow, quiet or without a relay.
const trial = "trial"

// trialOfPrograms is the same for templates that write to programs.
const trialOfPrograms = "trial-of-programs"

// everyone is the rule that the test adds to each topic: somebody has it.
const everyone = "everyone"

// forTrial adds to a document what the test needs: a channel and, in each topic, a
// rule that is true for all events.
func forTrial(doc map[string]any, relay string) map[string]any {
	channels := inner(doc, "channels")
	if channels == nil {
		channels = map[string]any{}
		doc["channels"] = channels
	}
	channels[trial] = map[string]any{"driver": "smtp", "relay": relay, "from": "Trial <trial@example.org>", "rate": "unlimited"}
	channels[trialOfPrograms] = map[string]any{"driver": "webhook"}
	for name, topic := range inner(doc, "topics") {
		if t, ok := topic.(map[string]any); ok && !strings.HasPrefix(name, "fanfare.") {
			rules, _ := t["rules"].([]any)
			rule := map[string]any{"name": everyone, "when": "ce.id != sub.none", "params": map[string]any{"none": "string"}}
			t["rules"] = append(rules, rule)
		}
	}
	for _, name := range holding {
		delete(doc, name)
	}
	return doc
}

func names(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
