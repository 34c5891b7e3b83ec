package render

import (
	"encoding/json"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/jsonschema"
	"fanfare.dev/fanfare/internal/render/liquid"
)

// Check compares what the template reads with what a message of a topic has: the fields of
// event with the topic's JSON Schema, and those of params with the names that the rule
// declares. Nil params are not compared. Without a schema the template is for direct sends,
// whose data is not known in advance; only direct sends have the variable sub. Where the schema
// does not decide (no properties, additionalProperties, a reference to another document), a
// field is taken to exist. A condition that reads an impossible field is an error like any
// other use.
//
// The error is a *fanfare.Error with the pointer and the line of the first wrong use; the
// others are its details.
func (t *Template) Check(schema json.RawMessage, params []string) error {
	var root any
	if len(schema) > 0 {
		if err := json.Unmarshal(schema, &root); err != nil {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "the schema is not valid JSON"}
		}
	}
	if wrong := t.checkKind(nil); wrong != nil {
		return wrong
	}
	return t.checkPaths(func(p liquid.Path) *fanfare.Error {
		switch {
		case p.Root == "sub" && root != nil:
			return invalid(p.Line, "use subscription.data or subscription.params", "%s: the variable sub exists only in direct messages, not in messages of a topic", p.Text)
		case p.Root == "event" && root != nil:
			return checkEvent(root, p)
		case p.Root == liquid.FieldsVariable && root != nil && len(p.Steps) > 0:
			return checkField(root, p)
		case p.Root == "subscription" || p.Root == "subscriptions":
			return checkParams(params, p)
		}
		return nil
	})
}

// CheckDigest compares what the template reads of items with the schemas of all topics whose
// events the digest may contain. A field is wrong if no schema allows it.
func (t *Template) CheckDigest(schemas []json.RawMessage) error {
	if wrong := t.checkKind(&Digest{}); wrong != nil {
		return wrong
	}
	roots := make([]any, len(schemas))
	for i, schema := range schemas {
		var err error
		if roots[i], err = jsonschema.Parse(schema); err != nil {
			return err
		}
	}
	return t.checkPaths(func(p liquid.Path) *fanfare.Error {
		if p.Root != "items" || len(p.Steps) < 3 || p.Steps[1].Name != "event" {
			return nil
		}
		of := p
		of.Steps = p.Steps[2:]
		var wrong *fanfare.Error
		for _, root := range roots {
			if wrong = checkEvent(root, of); wrong == nil {
				return nil
			}
		}
		return wrong
	})
}

// checkPaths calls check for every path that the template reads.
func (t *Template) checkPaths(check func(liquid.Path) *fanfare.Error) error {
	var wrong []*fanfare.Error
	for _, part := range t.allParts() {
		if part.Made != nil && part.Mode == liquid.Plain {
			continue // it reads the same paths as the HTML
		}
		for _, p := range part.Paths {
			if err := check(p); err != nil {
				wrong = append(wrong, t.setPosition(part, err, p.Text))
			}
		}
	}
	return joinErrors(wrong)
}

func checkParams(params []string, p liquid.Path) *fanfare.Error {
	segments := p.Steps
	if p.Root == "subscriptions" && len(segments) > 0 {
		segments = segments[1:]
	}
	if params == nil || len(segments) < 2 || segments[0].Name != "params" || segments[1].Name == "" ||
		slices.Contains(params, segments[1].Name) {
		return nil
	}
	return invalid(p.Line, liquid.Nearest(segments[1].Name, params), "%s: the rule has no parameter %s", p.Text, segments[1].Name)
}

func checkEvent(root any, p liquid.Path) *fanfare.Error {
	i, names := jsonschema.Missing(root, root, p.Steps)
	if i < 0 {
		return nil
	}
	name := "event" + jsonschema.JoinSteps(p.Steps[:i+1])
	if p.Text != name && !strings.HasPrefix(p.Text, name) {
		name = p.Text + " (" + name + ")"
	}
	return invalid(p.Line, liquid.Nearest(p.Steps[i].Name, names), "unknown field %s: it is not in the schema of the topic", name)
}

// checkField compares a field of the syntax of GOV.UK Notify with the schema of a topic.
// Messages of a topic have the fields of the event only.
func checkField(root any, p liquid.Path) *fanfare.Error {
	_, names, lacks := jsonschema.Descend(root, []any{root}, jsonschema.Step{Name: p.Text})
	key := liquid.FieldName(p.Steps[0].Name)
	if !lacks || key == liquid.UnsubscribeField {
		return nil
	}
	for _, name := range names {
		if liquid.PlainName(name) == key {
			return nil
		}
	}
	return invalid(p.Line, liquid.Nearest(key, names), "unknown field %s: it is not in the schema of the topic", p.Text)
}
