package condition

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// decode reads event data into nil, bool, int64, float64, string, []any and
// map[string]any. A number becomes a float64 where the schema says "number" and
// an int64 where it says "integer"; where it says nothing, an int64 if it is
// written without fraction and exponent and fits, else a float64. What is
// beyond the range of a double is infinite. No data is null.
func decode(data json.RawMessage, s *shape) (any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = more
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
		}
	}
	if err != nil {
		return nil, notJSON()
	}
	return typed(v, s), nil
}

// typed replaces the numbers of v, in place, by what s says they are.
func typed(v any, s *shape) any {
	switch x := v.(type) {
	case json.Number:
		return number(string(x), s)
	case map[string]any:
		for name, member := range x {
			switch member.(type) {
			case json.Number, map[string]any, []any:
				x[name] = typed(member, shapeOfField(s, name))
			}
		}
	case []any:
		var items *shape
		if s != nil {
			items = s.items
		}
		for i, member := range x {
			x[i] = typed(member, items)
		}
	}
	return v
}

func shapeOfField(s *shape, name string) *shape {
	if s == nil {
		return nil
	}
	return s.fields[name]
}

func number(text string, s *shape) any {
	k := kindAny
	if s != nil {
		k = s.kind
	}
	if k != kindDouble {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i
		}
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range gives the infinity
	if k == kindInt && f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f)
	}
	return f
}
