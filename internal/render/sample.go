package render

import (
	"encoding/json"
	"errors"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/mime"
)

// DryRun renders the template with sample data: each field of the schema with a
// value that fits it (its first example, default or enumerated value where it has
// one), and everything else that the template reads with a stand-in. schema may
// be empty. Then it renders it for every kind of recipient and event that can occur,
// those that lack what they may lack. The error is a *fanfare.Error with pointer and
// line.
func (t *Template) DryRun(schema json.RawMessage) (subject, text, html string, err error) {
	root, err := readSchema(schema)
	if err != nil {
		return "", "", "", err
	}
	vars, err := t.sampleVars(root)
	if err != nil {
		return "", "", "", err
	}
	rendered, err := t.renderAll(vars, nil)
	if err == nil {
		err = t.tryKinds(vars, root)
	}
	return rendered[0], rendered[1], rendered[2], err
}

// DryRunDigest is DryRun of a template that tells of several events, whose data fit
// one of the schemas.
func (t *Template) DryRunDigest(schemas []json.RawMessage) error {
	if len(schemas) == 0 {
		schemas = []json.RawMessage{nil}
	}
	for _, schema := range schemas {
		root, err := readSchema(schema)
		if err != nil {
			return err
		}
		// What one topic has another may lack: only where there is one, all are known.
		vars, err := t.sampleOf(root, describes(root) && len(schemas) == 1)
		if err == nil {
			err = t.tryKinds(vars, root)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readSchema decodes a schema; nil says nothing.
func readSchema(schema json.RawMessage) (root any, err error) {
	if len(schema) > 0 && json.Unmarshal(schema, &root) != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the schema is not valid JSON"}
	}
	return root, nil
}

// sampleVars makes variables with which the template renders. Of params, data
// and attributes only the names are known: a template that can work with any of
// these stand-ins is good.
func (t *Template) sampleVars(root any) (vars map[string]any, err error) {
	return t.sampleOf(root, describes(root))
}

// sampleOf is sampleVars; known says that the sample has all that there can be.
func (t *Template) sampleOf(root any, known bool) (vars map[string]any, err error) {
	for _, standIn := range []any{1, "sample", "2026-01-31T12:00:00Z", []any{"sample"}} {
		vars = t.standIns(root, standIn)
		if err = t.tryAll(vars, &absences{of: t, sample: known}); err == nil {
			return vars, nil
		}
	}
	return nil, dateWanted(err)
}

// dateWanted says of an error of a sample what makes the sample a date.
func dateWanted(err error) error {
	wrong, ok := errors.AsType[*fanfare.Error](err)
	if !ok || !strings.Contains(wrong.Message, notADate(sampleText)) {
		return err
	}
	told := *wrong
	filter, _, _ := strings.Cut(wrong.Message, ": ")
	told.Message = filter + " needs a date, and the schema does not say that the field is one"
	told.Hint = "add format: date-time, or format: date, to the field in the schema of the topic"
	return &told
}

// standIns are variables that have everything that the template reads.
func (t *Template) standIns(root, standIn any) map[string]any {
	subscription := map[string]any{"id": "sub-1", "rule": "sample", "params": map[string]any{}, "data": map[string]any{}}
	vars := map[string]any{
		"event": settleSample(sample(root, root, 0)),
		"meta": map[string]any{
			"id": "sample", "source": "/sample", "type": "sample", "subject": "sample",
			"time": "2026-01-31T12:00:00Z", "topic": "sample", "service": "sample",
		},
		"subscriber": map[string]any{
			"id": "sample", "address": "sample@example.org", "locale": "en", "time_zone": "UTC",
			"attributes": map[string]any{},
		},
		"sub":             map[string]any{},
		"subscription":    subscription,
		"subscriptions":   []any{subscription},
		"unsubscribe_url": "https://example.org/u/sample",
		"preferences_url": "https://example.org/p/sample",
	}
	vars[voiceVariable] = t.voiceFor("", "")
	if t.Digest() {
		vars["digest"] = map[string]any{"due": "2026-01-31T08:00:00Z", "cadence": "daily 08:00", "time_zone": "UTC", "service": "sample"}
		vars["items"] = []any{map[string]any{"event": vars["event"], "meta": vars["meta"], "subscription": subscription, "subscriptions": []any{subscription}}}
		vars["count"], vars["more"] = 2, 1
		delete(vars, "event")
		delete(vars, "meta")
	}
	own := newFields(map[string]any{}, plainNames(vars["event"]), "https://example.org/u/sample")
	vars[fieldsVariable] = own
	for _, part := range t.everyPart() {
		for _, p := range part.paths {
			if p.root == fieldsVariable && len(p.segments) > 0 {
				if name := fieldName(p.segments[0].name); own.event[name] == nil && name != unsubscribeField {
					own.own[name] = standIn
				}
				continue
			}
			if p.root != "" {
				vars[p.root] = ensure(vars[p.root], p.segments, standIn)
			}
		}
	}
	vars["subscription"] = vars["subscriptions"].([]any)[0]
	return vars
}

// tryAll renders the template and its variants.
func (t *Template) tryAll(vars map[string]any, absent *absences) error {
	for _, one := range t.every() {
		if _, err := one.renderAll(one.withVoice(vars), absent); err != nil {
			return err
		}
	}
	return nil
}

// renderAll renders subject, text, HTML and JSON.
func (t *Template) renderAll(vars map[string]any, absent *absences) (rendered [4]string, err error) {
	for i, part := range []*part{t.subject, t.text, t.html, t.json} {
		if part == nil {
			continue
		}
		out, wrong := render(part.whole, vars, &effort{absent: absent})
		if wrong != nil {
			return rendered, t.rendered(part, wrong)
		}
		if part == t.json && !json.Valid(out) {
			return rendered, t.rendered(part, notJSON())
		}
		rendered[i] = string(out)
	}
	rendered[0] = string(mime.CleanSubject([]byte(rendered[0])))
	return rendered, nil
}

// sample makes a value that fits a schema, or nil where it says nothing.
func sample(root, schema any, depth int) any {
	one, ok := schema.(map[string]any)
	if !ok || depth > maxDepth/4 {
		return nil
	}
	if examples, ok := one["examples"].([]any); ok && len(examples) > 0 {
		return examples[0]
	}
	for _, word := range []string{"const", "default"} {
		if v, ok := one[word]; ok && v != nil {
			return v
		}
	}
	if values, ok := one["enum"].([]any); ok {
		for _, v := range values {
			if v != nil {
				return v
			}
		}
	}
	if ref, ok := one["$ref"].(string); ok {
		if target, ok := dereference(root, ref); ok {
			return sample(root, target, depth+1)
		}
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		if branches, ok := one[word].([]any); ok && one["properties"] == nil {
			for _, branch := range branches {
				if v := sample(root, branch, depth+1); v != nil {
					return v
				}
			}
		}
	}
	kind := ""
	if all := types(one); len(all) > 0 {
		kind = all[0]
	} else if one["properties"] != nil {
		kind = "object"
	}
	switch kind {
	case "object":
		object := map[string]any{}
		if properties, ok := one["properties"].(map[string]any); ok {
			for name, property := range properties {
				if v := sample(root, property, depth+1); v != nil {
					object[name] = v
				}
			}
		}
		return object
	case "array":
		if v := sample(root, one["items"], depth+1); v != nil {
			return []any{v}
		}
		return []any{}
	case "integer", "number":
		if least, ok := one["minimum"].(float64); ok && least > 1 {
			return least
		}
		return 1.0
	case "boolean":
		return true
	case "string":
		return sampleString(one)
	}
	return nil
}

func sampleString(schema map[string]any) string {
	switch schema["format"] {
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "date":
		return "2026-01-31"
	case "email":
		return "sample@example.org"
	case "uri", "uri-reference":
		return "https://example.org/sample"
	}
	return sampleText
}

// sampleText is a text of which the schema says nothing more.
const sampleText = "sample"

// settleSample gives whole numbers the type that decode gives them.
func settleSample(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int(v)) {
			return int(v)
		}
	case []any:
		for i := range v {
			v[i] = settleSample(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = settleSample(v[k])
		}
	}
	return v
}

// ensure makes the path exist under v, with standIn at its end.
func ensure(v any, path []segment, standIn any) any {
	if len(path) == 0 {
		if v == nil {
			return standIn
		}
		return v
	}
	s, rest := path[0], path[1:]
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	switch {
	case s.name == "" && !s.index, v != nil && !isObject && !isList:
		return v
	case s.index || !isObject && (s.name == "first" || s.name == "last" || s.name == "size"):
		if isObject {
			return v
		}
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = ensure(list[0], rest, standIn)
		return list
	case isList:
		return v
	case object == nil:
		object = map[string]any{}
	}
	object[s.name] = ensure(object[s.name], rest, standIn)
	return object
}

// describes reports whether a schema says what an event has.
func describes(root any) bool {
	object, ok := root.(map[string]any)
	return ok && len(object) > 0
}
