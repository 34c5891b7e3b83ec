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
type shape struct {
	kind   kind
	fields map[string]*shape
	items  *shape // of a list; nil where anything may be in it
	open   bool   // fields that are not listed may be there too
}

// anything is the shape of a value about which nothing is said.
func anything() *shape { return &shape{open: true} }

// parseSchema reads the shape out of a JSON Schema. A nil schema says nothing.
func parseSchema(raw json.RawMessage) (*shape, error) {
	if len(raw) == 0 {
		return anything(), nil
	}
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	r := schemaReader{root: root, refs: map[string]*shape{}}
	return r.shape(root), nil
}

// A schemaReader turns schemas into shapes; a reference is read once, so that a
// schema may refer to itself.
type schemaReader struct {
	root any
	refs map[string]*shape
}

func (r *schemaReader) shape(schema any) *shape {
	m, ok := schema.(map[string]any)
	if !ok {
		return anything()
	}
	if ref, ok := m["$ref"].(string); ok && len(m) == 1 {
		return r.referred(ref)
	}
	s := &shape{}
	r.fill(s, m)
	return s
}

func (r *schemaReader) referred(ref string) *shape {
	if s := r.refs[ref]; s != nil {
		return s
	}
	s := &shape{}
	r.refs[ref] = s
	target, ok := lookUp(r.root, ref)
	if m, isObject := target.(map[string]any); ok && isObject {
		r.fill(s, m)
	} else {
		s.open = true
	}
	return s
}

// fill makes s the shape of schema m.
func (r *schemaReader) fill(s *shape, m map[string]any) {
	closed := r.merge(s, m, map[string]bool{})
	if len(s.fields) == 0 && !closed {
		s.open = true
	}
}

// merge adds what m says to s, following each reference once. It reports
// whether m shuts other fields out.
func (r *schemaReader) merge(s *shape, m map[string]any, followed map[string]bool) (closed bool) {
	if k := schemaKind(m["type"]); k != kindAny {
		if s.kind == kindAny {
			s.kind = k
		} else if s.kind != k {
			s.kind = kindAny
		}
	}
	if fields, ok := m["properties"].(map[string]any); ok {
		if s.fields == nil {
			s.fields = make(map[string]*shape, len(fields))
		}
		for name, schema := range fields {
			if s.fields[name] != nil {
				s.fields[name] = anything() // said in two places: no promise
			} else {
				s.fields[name] = r.shape(schema)
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
		s.items = r.shape(items)
	}
	return r.mergeParts(s, m, followed) || closed
}

func (r *schemaReader) mergeParts(s *shape, m map[string]any, followed map[string]bool) (closed bool) {
	var parts []any
	if ref, ok := m["$ref"].(string); ok && !followed[ref] {
		followed[ref] = true
		if target, ok := lookUp(r.root, ref); ok {
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
		maybe := &shape{}
		r.merge(maybe, sub, followed)
		s.open = s.open || maybe.open
		for name := range maybe.fields {
			if s.fields == nil {
				s.fields = map[string]*shape{}
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
		return kinds[t]
	case []any:
		found := kindAny
		for _, one := range t {
			name, _ := one.(string)
			k := kinds[name]
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

var kinds = map[string]kind{
	"null": kindNull, "boolean": kindBool, "integer": kindInt, "number": kindDouble,
	"string": kindString, "array": kindList, "object": kindMap,
}

// lookUp follows a reference inside the schema: "#" or "#/a/JSON/pointer".
func lookUp(root any, ref string) (any, bool) {
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
func (s *shape) field(name string) (field *shape, known bool) {
	if f := s.fields[name]; f != nil {
		return f, true
	}
	return anything(), s.open
}

// names lists the fields in alphabetical order.
func (s *shape) names() []string {
	names := make([]string, 0, len(s.fields))
	for name := range s.fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
