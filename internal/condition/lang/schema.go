package lang

import (
	"encoding/json"
	"slices"
	"strings"
)

// Kind is the kind of a value as far as it is known before there is an event.
type Kind uint8

const (
	KindAny Kind = iota
	KindNull
	KindBool
	KindInt
	KindDouble
	KindString
	KindList
	KindMap
	kindTime
	kindDuration
)

var kindNames = [...]string{"anything", "null", "a boolean", "an integer", "a number", "a string", "a list", "an object", "a time", "a duration"}

func (k Kind) String() string { return kindNames[k] }

func (k Kind) numeric() bool { return k == KindInt || k == KindDouble }

// A SchemaType is the type that a JSON Schema gives to a value: enough to refuse unknown fields and
// to read numbers with their declared type. It does not validate events; ingest does.
type SchemaType struct {
	Kind   Kind
	Fields map[string]*SchemaType
	Items  *SchemaType // of a list; nil if elements may have any type
	Open   bool        // other fields are allowed too
}

// anyType is the type of a value that the schema does not restrict.
func anyType() *SchemaType { return &SchemaType{Open: true} }

// ParseSchema reads the type of the event's data from a JSON Schema. Without a schema any field is
// allowed.
func ParseSchema(raw json.RawMessage) (*SchemaType, error) {
	if len(raw) == 0 {
		return anyType(), nil
	}
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	r := schemaReader{root: root, refs: map[string]*SchemaType{}}
	return r.read(root), nil
}

// A schemaReader turns schemas into types. It reads each reference once, so that a schema may refer
// to itself.
type schemaReader struct {
	root any
	refs map[string]*SchemaType
}

func (r *schemaReader) read(schema any) *SchemaType {
	m, ok := schema.(map[string]any)
	if !ok {
		return anyType()
	}
	if ref, ok := m["$ref"].(string); ok && len(m) == 1 {
		return r.resolveRef(ref)
	}
	s := &SchemaType{}
	r.fill(s, m)
	return s
}

func (r *schemaReader) resolveRef(ref string) *SchemaType {
	if s := r.refs[ref]; s != nil {
		return s
	}
	s := &SchemaType{}
	r.refs[ref] = s
	target, ok := resolvePointer(r.root, ref)
	if m, isObject := target.(map[string]any); ok && isObject {
		r.fill(s, m)
	} else {
		s.Open = true
	}
	return s
}

// fill sets s to the type of schema m.
func (r *schemaReader) fill(s *SchemaType, m map[string]any) {
	closed := r.merge(s, m, map[string]bool{})
	if len(s.Fields) == 0 && !closed {
		s.Open = true
	}
}

// merge adds schema m to s and follows each reference once. It reports whether m forbids other
// fields.
func (r *schemaReader) merge(s *SchemaType, m map[string]any, followed map[string]bool) (closed bool) {
	if k := schemaKind(m["type"]); k != KindAny {
		if s.Kind == KindAny {
			s.Kind = k
		} else if s.Kind != k {
			s.Kind = KindAny
		}
	}
	if fields, ok := m["properties"].(map[string]any); ok {
		if s.Fields == nil {
			s.Fields = make(map[string]*SchemaType, len(fields))
		}
		for name, schema := range fields {
			if s.Fields[name] != nil {
				s.Fields[name] = anyType() // declared twice: no type is certain
			} else {
				s.Fields[name] = r.read(schema)
			}
		}
	}
	for _, word := range [...]string{"additionalProperties", "unevaluatedProperties"} {
		switch more := m[word].(type) {
		case bool:
			s.Open = s.Open || more
			closed = closed || !more
		case map[string]any:
			s.Open = true
		}
	}
	if _, ok := m["patternProperties"]; ok {
		s.Open = true
	}
	if items, ok := m["items"]; ok {
		s.Items = r.read(items)
	}
	return r.mergeParts(s, m, followed) || closed
}

func (r *schemaReader) mergeParts(s *SchemaType, m map[string]any, followed map[string]bool) (closed bool) {
	var parts []any
	if ref, ok := m["$ref"].(string); ok && !followed[ref] {
		followed[ref] = true
		if target, ok := resolvePointer(r.root, ref); ok {
			parts = append(parts, target)
		} else {
			s.Open = true
		}
	}
	all, _ := m["allOf"].([]any)
	parts = append(parts, all...)
	for _, part := range parts {
		if sub, ok := part.(map[string]any); ok {
			closed = r.merge(s, sub, followed) || closed
		}
	}
	// A branch may apply or not: its fields are possible, their types are not certain.
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
		maybe := &SchemaType{}
		r.merge(maybe, sub, followed)
		s.Open = s.Open || maybe.Open
		for name := range maybe.Fields {
			if s.Fields == nil {
				s.Fields = map[string]*SchemaType{}
			}
			if s.Fields[name] == nil {
				s.Fields[name] = anyType()
			}
		}
	}
	return closed
}

// schemaKind reads the keyword "type"; null in addition to another type changes nothing.
func schemaKind(word any) Kind {
	switch t := word.(type) {
	case string:
		return kindsByName[t]
	case []any:
		found := KindAny
		for _, one := range t {
			name, _ := one.(string)
			k := kindsByName[name]
			if k == KindNull && len(t) > 1 {
				continue
			}
			if found != KindAny && found != k {
				return KindAny
			}
			found = k
		}
		return found
	}
	return KindAny
}

var kindsByName = map[string]Kind{
	"null": KindNull, "boolean": KindBool, "integer": KindInt, "number": KindDouble,
	"string": KindString, "array": KindList, "object": KindMap,
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

// Field returns the type of a field; known is false if the schema does not allow it.
func (s *SchemaType) Field(name string) (field *SchemaType, known bool) {
	if f := s.Fields[name]; f != nil {
		return f, true
	}
	return anyType(), s.Open
}

// names lists the fields in alphabetical order.
func (s *SchemaType) names() []string {
	names := make([]string, 0, len(s.Fields))
	for name := range s.Fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
