package evaluator

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

type numberKind uint8

const (
	numberAsWritten numberKind = iota
	numberInteger
	numberDouble
)

// A shape contains the requirements of a JSON Schema for a value: the kind of a number, and the shapes of
// its fields and elements. A nil shape requires nothing. The shapes of a recursive schema refer to
// themselves.
type shape struct {
	kind   numberKind
	fields map[string]*shape // the known fields; nil for a field without requirements
	items  *shape
}

func (s *shape) number() numberKind {
	if s == nil {
		return numberAsWritten
	}
	return s.kind
}

func (s *shape) field(name string) *shape {
	if s == nil {
		return nil
	}
	return s.fields[name]
}

func (s *shape) element() *shape {
	if s == nil {
		return nil
	}
	return s.items
}

// A schemaReader converts the parts of a schema to shapes.
type schemaReader struct {
	root  value
	known map[*composite]*shape
}

// readSchema returns the shape of the data of a schema.
func readSchema(schema []byte) (*shape, error) {
	root, err := decodeJSON(schema, nil)
	if err != nil {
		return nil, fmt.Errorf("the schema is not valid JSON: %w", err)
	}
	switch root.kind {
	case kindBool:
		return nil, nil
	case kindMap:
		r := &schemaReader{root, map[*composite]*shape{}}
		return r.shape(root), nil
	default:
		return nil, fmt.Errorf("the schema is a %s, not an object", typeNames[root.kind])
	}
}

// A part is a schema that applies to a value, directly or by a reference. A schema in a branch (of
// anyOf, for example) applies to some data only.
type part struct {
	schema *composite
	branch bool
}

// shape returns the shape of a schema with everything that it refers to.
func (r *schemaReader) shape(schema value) *shape {
	if schema.kind != kindMap {
		return nil
	}
	if s, ok := r.known[schema.ref]; ok {
		return s
	}
	s := &shape{}
	r.known[schema.ref] = s
	parts := r.parts(nil, map[*composite]bool{}, schema, false)
	s.kind = numberOf(parts)
	s.fields = r.fieldsOf(parts)
	s.items = r.itemsOf(parts)
	return s
}

// parts collects the schemas that apply to the same value as schema.
func (r *schemaReader) parts(found []part, seen map[*composite]bool, schema value, branch bool) []part {
	if schema.kind != kindMap || seen[schema.ref] {
		return found
	}
	seen[schema.ref] = true
	found = append(found, part{schema.ref, branch})
	if ref, ok := member(schema.ref, "$ref"); ok && ref.kind == kindString {
		if target, ok := r.resolve(ref.str); ok {
			found = r.parts(found, seen, target, branch)
		}
	}
	each := func(name string, branch bool) {
		if several, ok := member(schema.ref, name); ok && several.kind >= kindList && several.kind <= kindMap {
			for _, item := range several.ref.items {
				found = r.parts(found, seen, item, branch)
			}
		}
	}
	each("allOf", branch)
	each("anyOf", true)
	each("oneOf", true)
	each("dependentSchemas", true)
	for _, name := range []string{"then", "else"} {
		if s, ok := member(schema.ref, name); ok {
			found = r.parts(found, seen, s, true)
		}
	}
	return found
}

func member(object *composite, name string) (value, bool) {
	at := object.findText(name)
	if at < 0 {
		return value{}, false
	}
	return object.items[at], true
}

// resolve follows a reference within the schema: # and a JSON Pointer.
func (r *schemaReader) resolve(ref string) (value, bool) {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local || pointer != "" && pointer[0] != '/' {
		return value{}, false
	}
	at := r.root
	if pointer == "" {
		return at, true
	}
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step, err := url.PathUnescape(step)
		if err != nil {
			return value{}, false
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch at.kind {
		case kindMap:
			next, ok := member(at.ref, step)
			if !ok {
				return value{}, false
			}
			at = next
		case kindList:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at.ref.items) {
				return value{}, false
			}
			at = at.ref.items[i]
		default:
			return value{}, false
		}
	}
	return at, true
}

// numberOf returns the kind of numbers that the parts require: the only type that they specify
// in addition to null.
func numberOf(parts []part) numberKind {
	types := map[string]bool{}
	for _, p := range parts {
		t, ok := member(p.schema, "type")
		if !ok || p.branch {
			continue
		}
		named := []value{t}
		if t.kind == kindList {
			named = t.ref.items
		}
		for _, name := range named {
			if name.str != "null" {
				types[name.str] = true
			}
		}
	}
	switch {
	case len(types) != 1:
		return numberAsWritten
	case types["integer"]:
		return numberInteger
	case types["number"]:
		return numberDouble
	default:
		return numberAsWritten
	}
}

// fieldsOf returns the fields that the parts specify. A field that two parts or a branch
// specify has no requirements.
func (r *schemaReader) fieldsOf(parts []part) map[string]*shape {
	fields := map[string]*shape{}
	for _, p := range parts {
		properties, ok := member(p.schema, "properties")
		if !ok || properties.kind != kindMap {
			continue
		}
		for i, key := range properties.ref.keys {
			if _, twice := fields[key.str]; twice || p.branch {
				fields[key.str] = nil
				continue
			}
			fields[key.str] = r.shape(properties.ref.items[i])
		}
	}
	return fields
}

// itemsOf returns the shape of all elements of a list, if only one part specifies it.
func (r *schemaReader) itemsOf(parts []part) *shape {
	var items *shape
	places := 0
	for _, p := range parts {
		if _, ok := member(p.schema, "prefixItems"); ok {
			places += 2
		}
		if of, ok := member(p.schema, "items"); ok {
			places++
			if !p.branch {
				items = r.shape(of)
			}
		}
	}
	if places != 1 {
		return nil
	}
	return items
}
