package condition

import (
	"encoding/json"
	"slices"
	"strings"
)

// kind is what is known about a value before there is an event.
type kind uint8

const (
	kindAny kind = iota
	kindNull
	kindBool
	kindInt
	kindDouble
	kindString
	kindList
	kindMap
	kindTime
	kindDuration
)

var kindNames = [...]string{"anything", "null", "a boolean", "an integer", "a number", "a string", "a list", "an object", "a time", "a duration"}

func (k kind) String() string { return kindNames[k] }

func (k kind) numeric() bool { return k == kindInt || k == kindDouble }

// A shape is what a JSON Schema says about one value: enough to refuse a field
// that cannot be there and to read numbers as what they are declared to be. It
// is no validator; intake has one.
type schemaType struct {
	kind   kind
	fields map[string]*schemaType
	items  *schemaType // of a list; nil where anything may be in it
	open   bool        // fields that are not listed may be there too
}

// anything is the shape of a value about which nothing is said.
func anything() *schemaType { return &schemaType{open: true} }

// parseSchema reads the shape out of a JSON Schema. A nil schema says nothing.
func parseSchema(raw json.RawMessage) (*schemaType, error) {
	if len(raw) == 0 {
		return anything(), nil
	}
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	r := schemaReader{root: root, refs: map[string]*schemaType{}}
	return r.read(root), nil
}

// A schemaReader turns schemas into shapes; a reference is read once, so that a
// schema may refer to itself.
type schemaReader struct {
	root any
	refs map[string]*schemaType
}

func (r *schemaReader) read(schema any) *schemaType {
	m, ok := schema.(map[string]any)
	if !ok {
		return anything()
	}
	if ref, ok := m["$ref"].(string); ok && len(m) == 1 {
		return r.resolveRef(ref)
	}
	s := &schemaType{}
	r.fill(s, m)
	return s
}

func (r *schemaReader) resolveRef(ref string) *schemaType {
	if s := r.refs[ref]; s != nil {
		return s
	}
	s := &schemaType{}
	r.refs[ref] = s
	target, ok := resolvePointer(r.root, ref)
	if m, isObject := target.(map[string]any); ok && isObject {
		r.fill(s, m)
	} else {
		s.open = true
	}
	return s
}

// fill makes s the shape of schema m.
func (r *schemaReader) fill(s *schemaType, m map[string]any) {
	closed := r.merge(s, m, map[string]bool{})
	if len(s.fields) == 0 && !closed {
		s.open = true
	}
}

// merge adds what m says to s, following each reference once. It reports
// whether m shuts other fields out.
func (r *schemaReader) merge(s *schemaType, m map[string]any, followed map[string]bool) (closed bool) {
	if k := schemaKind(m["type"]); k != kindAny {
		if s.kind == kindAny {
			s.kind = k
		} else if s.kind != k {
			s.kind = kindAny
		}
	}
	if fields, ok := m["properties"].(map[string]any); ok {
		if s.fields == nil {
			s.fields = make(map[string]*schemaType, len(fields))
		}
		for name, schema := range fields {
			if s.fields[name] != nil {
				s.fields[name] = anything() // said in two places: no promise
			} else {
				s.fields[name] = r.read(schema)
			}
		}
	}
	for _, word := range [...]string{"additionalProperties", "unevaluatedProperties"} {
		switch more := m[word].(type) {
		case bool:
			s.open = s.open || more
			closed = closed || !more
		case map[string]any:
			s.open = true
		}
	}
	if _, ok := m["patternProperties"]; ok {
		s.open = true
	}
	if items, ok := m["items"]; ok {
		s.items = r.read(items)
	}
	return r.mergeParts(s, m, followed) || closed
}

func (r *schemaReader) mergeParts(s *schemaType, m map[string]any, followed map[string]bool) (closed bool) {
	var parts []any
	if ref, ok := m["$ref"].(string); ok && !followed[ref] {
		followed[ref] = true
		if target, ok := resolvePointer(r.root, ref); ok {
			parts = append(parts, target)
		} else {
			s.open = true
		}
	}
	all, _ := m["allOf"].([]any)
	parts = append(parts, all...)
	for _, part := range parts {
		if sub, ok := part.(map[string]any); ok {
			closed = r.merge(s, sub, followed) || closed
		}
	}
	// A branch may hold or not: its fields may be there, its types promise nothing.
	var branches []any
	for _, word := range [...]string{"anyOf", "oneOf"} {
		list, _ := m[word].([]any)
		branches = append(branches, list...)
	}
	branches = append(branches, m["then"], m["else"])
	if dependent, ok := m["dependentSchemas"].(map[string]any); ok {
		for _, branch := range dependent {
			branches = append(branches, branch)
		}
	}
	for _, branch := range branches {
		sub, ok := branch.(map[string]any)
		if !ok {
			continue
		}
		maybe := &schemaType{}
		r.merge(maybe, sub, followed)
		s.open = s.open || maybe.open
		for name := range maybe.fields {
			if s.fields == nil {
				s.fields = map[string]*schemaType{}
			}
			if s.fields[name] == nil {
				s.fields[name] = anything()
			}
		}
	}
	return closed
}

// schemaKind reads the word "type"; null beside another type changes nothing.
func schemaKind(word any) kind {
	switch t := word.(type) {
	case string:
		return kindsByName[t]
	case []any:
		found := kindAny
		for _, one := range t {
			name, _ := one.(string)
			k := kindsByName[name]
			if k == kindNull && len(t) > 1 {
				continue
			}
			if found != kindAny && found != k {
				return kindAny
			}
			found = k
		}
		return found
	}
	return kindAny
}

var kindsByName = map[string]kind{
	"null": kindNull, "boolean": kindBool, "integer": kindInt, "number": kindDouble,
	"string": kindString, "array": kindList, "object": kindMap,
}

// resolvePointer follows a reference inside the schema: "#" or "#/a/JSON/pointer".
func resolvePointer(root any, ref string) (any, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	for _, step := range strings.Split(path, "/")[1:] {
		m, ok := root.(map[string]any)
		if !ok {
			return nil, false
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		if root, ok = m[step]; !ok {
			return nil, false
		}
	}
	return root, true
}

// field returns the shape of the field name: known is false where there can be none.
func (s *schemaType) field(name string) (field *schemaType, known bool) {
	if f := s.fields[name]; f != nil {
		return f, true
	}
	return anything(), s.open
}

// names lists the fields in alphabetical order.
func (s *schemaType) names() []string {
	names := make([]string, 0, len(s.fields))
	for name := range s.fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
