package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ApplyPatch changes the properties of a record as a PatchObject says (RFC 8620, section 5.3), and returns the result and the
// names of the properties that it touches. The record is not changed. A value of null removes what is at a path; at the path of a
// property, it stands for the default value, so the result has it as nil.
func ApplyPatch(record map[string]any, patch Object) (result map[string]any, touched []string, failed *SetError) {
	invalid := func(format string, args ...any) (map[string]any, []string, *SetError) {
		return nil, nil, &SetError{Type: SetInvalidPatch, Description: fmt.Sprintf(format, args...)}
	}
	paths := make([]string, len(patch))
	for i, m := range patch {
		paths[i] = m.Name
	}
	slices.Sort(paths)
	for i, path := range paths {
		for _, other := range paths[i+1:] {
			if strings.HasPrefix(other, path+"/") {
				return invalid("the path %.80q is below the path %.80q in the same patch", other, path)
			}
		}
	}
	result = clone(record).(map[string]any)
	for _, m := range patch {
		tokens := strings.Split(m.Name, "/")
		for i, token := range tokens {
			tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		}
		if !slices.Contains(touched, tokens[0]) {
			touched = append(touched, tokens[0])
		}
		at := result
		for i, token := range tokens[:len(tokens)-1] {
			below, ok := at[token].(map[string]any)
			if !ok {
				return invalid("the path %.80q leads to %.80q, which is not an object", m.Name, strings.Join(tokens[:i+1], "/"))
			}
			at = below
		}
		value, err := parseAny(m.Value)
		if err != nil {
			return invalid("the value at the path %.80q cannot be read", m.Name)
		}
		last := tokens[len(tokens)-1]
		if value == nil && len(tokens) > 1 {
			delete(at, last)
			continue
		}
		at[last] = value
	}
	return result, touched, nil
}

// clone copies the objects of a value. Arrays are shared, because a patch does not change them.
func clone(value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	copied := make(map[string]any, len(object))
	for name, member := range object {
		copied[name] = clone(member)
	}
	return copied
}

// Properties returns a record as a PatchObject and a record of ApplyPatch have it.
func Properties(record any) (map[string]any, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	value, err := parseAny(text)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a record must be an object, not %T", value)
	}
	return object, nil
}
