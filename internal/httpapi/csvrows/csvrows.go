// Package csvrows writes values as rows of CSV (RFC 4180). The columns of a type follow from its JSON members: a member of a nested object is a column with
// both names, such as stages.received, and a list or a map is one cell with its JSON. The columns do not depend on the values, so that all rows of a list have
// the same ones. A text that a spreadsheet would take for a formula begins with an apostrophe.
//
// The exports of lists in package httpapi use it.
package csvrows

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// A column is one member of a type.
type column struct {
	name string
	path []int // fields, from the outermost struct
}

// Columns are the columns of a struct type.
type Columns struct{ all []column }

// ColumnsOf returns the columns of a struct type, in the order of its fields.
func ColumnsOf(t reflect.Type) *Columns {
	c := &Columns{}
	c.add(t, "", nil, nil)
	return c
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// add adds the members of t, whose names begin with prefix. within are the types around it.
func (c *Columns) add(t reflect.Type, prefix string, path []int, within []reflect.Type) {
	within = append(slices.Clone(within), t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(slices.Clone(path), i)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" && options == "":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct && !isLeaf(inner):
			c.add(inner, prefix, at, within)
		case !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			if inner.Kind() == reflect.Struct && !isLeaf(inner) && !slices.Contains(within, inner) {
				c.add(inner, prefix+name+".", at, within)
				continue
			}
			c.all = append(c.all, column{prefix + name, at})
		}
	}
}

// isLeaf reports whether a type has its own form in JSON.
func isLeaf(t reflect.Type) bool {
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) || t.Implements(textMarshaler) || reflect.PointerTo(t).Implements(textMarshaler)
}

// Names returns the names of the columns.
func (c *Columns) Names() []string {
	names := make([]string, len(c.all))
	for i := range c.all {
		names[i] = c.all[i].name
	}
	return names
}

// Row returns the cells of a value of the type. A member that is absent in JSON, or null, has an empty cell.
func (c *Columns) Row(v reflect.Value) ([]string, error) {
	cells := make([]string, len(c.all))
	for i := range c.all {
		f, ok := c.all[i].of(v)
		if !ok {
			continue
		}
		text, err := json.Marshal(f.Interface())
		if err != nil {
			return nil, err
		}
		if cells[i], err = cellOf(text); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

// of returns the field of a column, unless JSON leaves it out.
func (c *column) of(v reflect.Value) (reflect.Value, bool) {
	for _, i := range c.path {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		_, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		v = v.Field(i)
		if isLeftOut(v, options) {
			return v, false
		}
	}
	return v, true
}

// isLeftOut reports whether a field with these options is absent in JSON.
func isLeftOut(v reflect.Value, options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitzero":
			if zero, ok := v.Interface().(interface{ IsZero() bool }); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
				if zero.IsZero() {
					return true
				}
			} else if v.IsZero() {
				return true
			}
		case "omitempty":
			switch v.Kind() {
			case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
				if v.Len() == 0 {
					return true
				}
			case reflect.Struct:
			default:
				if v.IsZero() {
					return true
				}
			}
		}
	}
	return false
}

// cellOf returns the cell of a JSON value: a text without quotes, nothing for null, and otherwise the JSON.
func cellOf(text []byte) (string, error) {
	switch {
	case string(text) == "null":
		return "", nil
	case len(text) > 0 && text[0] == '"':
		var s string
		err := json.Unmarshal(text, &s)
		return Neutral(s), err
	}
	return string(text), nil
}

// Neutral returns a text that no spreadsheet takes for a formula.
func Neutral(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}
