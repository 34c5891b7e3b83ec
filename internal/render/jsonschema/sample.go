package jsonschema

import (
	"encoding/json"
	"slices"

	"fanfare.dev/fanfare"
)

// Parse decodes a schema; an empty one is nil.
func Parse(schema json.RawMessage) (root any, err error) {
	if len(schema) > 0 && json.Unmarshal(schema, &root) != nil {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the schema is not valid JSON"}
	}
	return root, nil
}

// Sample returns a value that fits a schema, or nil if the schema says nothing.
func Sample(root, schema any, depth int) any {
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
			return Sample(root, target, depth+1)
		}
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		if branches, ok := one[word].([]any); ok && one["properties"] == nil {
			for _, branch := range branches {
				if v := Sample(root, branch, depth+1); v != nil {
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
				if v := Sample(root, property, depth+1); v != nil {
					object[name] = v
				}
			}
		}
		return object
	case "array":
		if v := Sample(root, one["items"], depth+1); v != nil {
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
	return SampleText
}

// SampleText is the sample of a string without further rules.
const SampleText = "sample"

// ConvertIntegers gives whole numbers the type int, as decoding does.
func ConvertIntegers(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int(v)) {
			return int(v)
		}
	case []any:
		for i := range v {
			v[i] = ConvertIntegers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = ConvertIntegers(v[k])
		}
	}
	return v
}

// Ensure makes the path exist in v, with standIn at its end.
func Ensure(v any, path []Step, standIn any) any {
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
	case s.Name == "" && !s.Index, v != nil && !isObject && !isList:
		return v
	case s.Index || !isObject && (s.Name == "first" || s.Name == "last" || s.Name == "size"):
		if isObject {
			return v
		}
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = Ensure(list[0], rest, standIn)
		return list
	case isList:
		return v
	case object == nil:
		object = map[string]any{}
	}
	object[s.Name] = Ensure(object[s.Name], rest, standIn)
	return object
}

// Describes reports whether a schema describes the members of an event.
func Describes(root any) bool {
	object, ok := root.(map[string]any)
	return ok && len(object) > 0
}

// LeastSample returns a value with as little as the schema allows: no optional member, no
// element, and null if that is allowed. If it cannot tell, it returns whole, which has
// everything.
func LeastSample(root, schema, whole any, depth int) any {
	one, ok := schema.(map[string]any)
	if !ok || depth > maxDepth/4 {
		return whole
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf", "if", "not", "minProperties", "dependentRequired", "dependentSchemas", "patternProperties", "minItems", "contains", "prefixItems"} {
		if _, ok := one[word]; ok {
			return whole
		}
	}
	if ref, ok := one["$ref"].(string); ok {
		if target, ok := dereference(root, ref); ok {
			return LeastSample(root, target, whole, depth+1)
		}
	}
	if nullable(one) {
		return nil
	}
	properties, _ := one["properties"].(map[string]any)
	switch kinds := types(one); {
	case slices.Equal(kinds, []string{"object"}), len(kinds) == 0 && properties != nil:
		object := map[string]any{}
		required, _ := one["required"].([]any)
		members, _ := whole.(map[string]any)
		for _, name := range required {
			if name, ok := name.(string); ok {
				object[name] = LeastSample(root, properties[name], members[name], depth+1)
			}
		}
		return object
	case slices.Equal(kinds, []string{"array"}):
		return []any{}
	}
	return whole
}

// nullable reports whether the schema allows null.
func nullable(schema map[string]any) bool {
	if all, ok := schema["type"].([]any); ok && slices.Contains(all, any("null")) {
		values, enumerated := schema["enum"].([]any)
		_, constant := schema["const"]
		return !constant && (!enumerated || slices.Contains(values, nil))
	}
	return false
}
