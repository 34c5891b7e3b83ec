package jsonschema

import (
	"maps"
	"slices"
	"strings"
)

// A Step is one step of a path.
type Step struct {
	Name  string // a name that is known when the template is compiled
	Index bool   // an index of a list, whatever its value
	// Neither: the step is known only when the template runs.
}

// Missing returns the index of the first step that cannot exist in a value of schema, with the
// names that can; -1 if all can.
func Missing(root, schema any, segments []Step) (at int, names []string) {
	from := []any{schema}
	for i, s := range segments {
		if s.Name == "" && !s.Index {
			break
		}
		next, names, lacks := Descend(root, from, s)
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

func JoinSteps(segments []Step) string {
	var b strings.Builder
	for _, s := range segments {
		switch {
		case s.Index:
			b.WriteString("[]")
		default:
			b.WriteString("." + s.Name)
		}
	}
	return b.String()
}

// Descend follows one step from the schemas at, any of which may hold. next is nil if nothing
// is known about the target. lacks means that the target cannot exist; names are then the
// members that can.
func Descend(root any, at []any, s Step) (next []any, names []string, lacks bool) {
	all := expand(root, at, nil, 0)
	if len(all) == 0 {
		return nil, nil, false
	}
	declared, open, typed := false, false, map[string]bool{}
	for _, one := range all {
		for _, t := range types(one) {
			typed[t] = true
		}
		if s.Index || s.Name == "first" || s.Name == "last" {
			if items, ok := one["items"]; ok {
				next = append(next, items)
			}
			if prefix, ok := one["prefixItems"].([]any); ok {
				next = append(next, prefix...)
			}
		}
		if s.Index {
			continue
		}
		if properties, ok := one["properties"].(map[string]any); ok {
			declared = true
			names = slices.AppendSeq(names, maps.Keys(properties))
			if property, ok := properties[s.Name]; ok {
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
	case s.Index:
		return nil, nil, !list
	case s.Name == "size" && (list || typed["string"] || typed["object"]):
		return nil, nil, false
	case (s.Name == "first" || s.Name == "last") && typed["array"]:
		return nil, nil, false
	case len(typed) > 0 && !typed["object"]:
		return nil, nil, true
	}
	return nil, names, declared && !open
}

// maxDepth bounds the walk through circular references.
const maxDepth = 32

// expand lists the schemas that may describe a value: at, what they refer to within the
// document, and the branches of their combinations. It returns nil if one of them allows
// anything or cannot be read.
func expand(root any, at []any, found []map[string]any, depth int) []map[string]any {
	for _, s := range at {
		one, ok := s.(map[string]any)
		if !ok || len(one) == 0 || depth > maxDepth {
			return nil // true, {}, or a circular reference
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

// dereference follows a reference inside the document, such as "#/$defs/place".
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
