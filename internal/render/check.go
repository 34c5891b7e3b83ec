package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
)

// Check compares what the template reads with what there will be in a message of
// a topic: the fields of event with the topic's JSON Schema, and those of params
// with the names that the rule declares. Nil params leaves these out. Without a
// schema the template is for direct sends, whose data is not known before; only
// these have the variable sub.
// Where the schema does not decide (no properties, additionalProperties, a
// reference elsewhere) the field is taken to exist. A condition on a field that
// cannot exist is as wrong as any other use.
//
// The error is a *fanfare.Error with the pointer and line of the first use that
// is wrong, and the others as details.
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
	return t.checkPaths(func(p path) *fanfare.Error {
		switch {
		case p.root == "sub" && root != nil:
			return invalid(p.line, "use subscription.data or subscription.params", "%s: sub is what a direct send says of a recipient; messages of a topic have none", p.text)
		case p.root == "event" && root != nil:
			return checkEvent(root, p)
		case p.root == fieldsVariable && root != nil && len(p.segments) > 0:
			return checkField(root, p)
		case p.root == "subscription" || p.root == "subscriptions":
			return checkParams(params, p)
		}
		return nil
	})
}

// CheckDigest compares what the template reads of items with the schemas of all
// topics whose events it may tell of: a field that none of them can have is wrong.
func (t *Template) CheckDigest(schemas []json.RawMessage) error {
	if wrong := t.checkKind(&Digest{}); wrong != nil {
		return wrong
	}
	roots := make([]any, len(schemas))
	for i, schema := range schemas {
		var err error
		if roots[i], err = readSchema(schema); err != nil {
			return err
		}
	}
	return t.checkPaths(func(p path) *fanfare.Error {
		if p.root != "items" || len(p.segments) < 3 || p.segments[1].name != "event" {
			return nil
		}
		of := p
		of.segments = p.segments[2:]
		var wrong *fanfare.Error
		for _, root := range roots {
			if wrong = checkEvent(root, of); wrong == nil {
				return nil
			}
		}
		return wrong
	})
}

// checkPaths asks about all that the template reads.
func (t *Template) checkPaths(check func(path) *fanfare.Error) error {
	var wrong []*fanfare.Error
	for _, part := range t.everyPart() {
		if part.made != nil && part.mode == plain {
			continue // it reads what the HTML reads
		}
		for _, p := range part.paths {
			if err := check(p); err != nil {
				wrong = append(wrong, t.at(part, err, p.text))
			}
		}
	}
	return gather(wrong)
}

func checkParams(params []string, p path) *fanfare.Error {
	segments := p.segments
	if p.root == "subscriptions" && len(segments) > 0 {
		segments = segments[1:]
	}
	if params == nil || len(segments) < 2 || segments[0].name != "params" || segments[1].name == "" ||
		slices.Contains(params, segments[1].name) {
		return nil
	}
	return invalid(p.line, nearest(segments[1].name, params), "%s: the rule has no parameter %s", p.text, segments[1].name)
}

func checkEvent(root any, p path) *fanfare.Error {
	i, names := lacking(root, root, p.segments)
	if i < 0 {
		return nil
	}
	name := "event" + joinSegments(p.segments[:i+1])
	if p.text != name && !strings.HasPrefix(p.text, name) {
		name = p.text + " (" + name + ")"
	}
	return invalid(p.line, nearest(p.segments[i].name, names), "unknown field %s: the topic's schema has none", name)
}

// lacking finds the first segment that cannot exist in what schema describes, with the
// names that can; -1 is none.
func lacking(root, schema any, segments []segment) (at int, names []string) {
	from := []any{schema}
	for i, s := range segments {
		if s.name == "" && !s.index {
			break
		}
		next, names, lacks := descend(root, from, s)
		if lacks {
			return i, names
		}
		if next == nil {
			break
		}
		from = next
	}
	return -1, nil
}

func joinSegments(segments []segment) string {
	var b strings.Builder
	for _, s := range segments {
		switch {
		case s.index:
			b.WriteString("[]")
		default:
			b.WriteString("." + s.name)
		}
	}
	return b.String()
}

// descend takes one step down from the schemas at, any of which may hold. next
// is nil where nothing is known of what is there. lacks means that it cannot be
// there; names are then those that can.
func descend(root any, at []any, s segment) (next []any, names []string, lacks bool) {
	all := expand(root, at, nil, 0)
	if len(all) == 0 {
		return nil, nil, false
	}
	declared, open, typed := false, false, map[string]bool{}
	for _, one := range all {
		for _, t := range types(one) {
			typed[t] = true
		}
		if s.index || s.name == "first" || s.name == "last" {
			if items, ok := one["items"]; ok {
				next = append(next, items)
			}
			if prefix, ok := one["prefixItems"].([]any); ok {
				next = append(next, prefix...)
			}
		}
		if s.index {
			continue
		}
		if properties, ok := one["properties"].(map[string]any); ok {
			declared = true
			names = slices.AppendSeq(names, maps.Keys(properties))
			if property, ok := properties[s.name]; ok {
				next = append(next, property)
			}
		}
		if _, ok := one["patternProperties"]; ok {
			open = true
		}
		if more, ok := one["additionalProperties"]; ok && more != false {
			open = true
		}
	}
	slices.Sort(names)
	list := typed["array"] || len(typed) == 0
	switch {
	case len(next) > 0:
		return next, nil, false
	case s.index:
		return nil, nil, !list
	case s.name == "size" && (list || typed["string"] || typed["object"]):
		return nil, nil, false
	case (s.name == "first" || s.name == "last") && typed["array"]:
		return nil, nil, false
	case len(typed) > 0 && !typed["object"]:
		return nil, nil, true
	}
	return nil, names, declared && !open
}

// maxDepth bounds the walk through references that lead in circles.
const maxDepth = 32

// expand lists the object schemas that may speak of a value: itself, what it
// refers to within the document and the branches of its combinations. It is
// empty where one of them says nothing or cannot be read.
func expand(root any, at []any, found []map[string]any, depth int) []map[string]any {
	for _, s := range at {
		one, ok := s.(map[string]any)
		if !ok || len(one) == 0 || depth > maxDepth {
			return nil // true, {}, or a circle
		}
		found = append(found, one)
		for _, word := range []string{"allOf", "anyOf", "oneOf"} {
			if branches, ok := one[word].([]any); ok {
				if found = expand(root, branches, found, depth+1); found == nil {
					return nil
				}
			}
		}
		for _, word := range []string{"then", "else"} {
			if branch, ok := one[word]; ok {
				if found = expand(root, []any{branch}, found, depth+1); found == nil {
					return nil
				}
			}
		}
		if ref, ok := one["$ref"].(string); ok {
			target, ok := dereference(root, ref)
			if !ok {
				return nil
			}
			if found = expand(root, []any{target}, found, depth+1); found == nil {
				return nil
			}
		}
	}
	return found
}

// dereference follows a reference inside the document, "#/$defs/place".
func dereference(root any, ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	at := root
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if name == "" && pointer == "" {
			break
		}
		object, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]; !ok {
			return nil, false
		}
	}
	return at, true
}

func types(schema map[string]any) []string {
	switch t := schema["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var all []string
		for _, one := range t {
			if s, ok := one.(string); ok && s != "null" {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}
