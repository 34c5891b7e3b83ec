package condition

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// decodeData reads event data into nil, bool, int64, float64, string, []any and
// map[string]any. A number becomes a float64 where the schema says "number" and
// an int64 where it says "integer"; where it says nothing, an int64 if it is
// written without fraction and exponent and fits, else a float64. What is
// beyond the range of a double is infinite. No data is null.
func decodeData(data json.RawMessage, s *schemaType) (any, error) {
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
	return applySchema(v, s), nil
}

// applySchema replaces the numbers of v, in place, by what s says they are.
func applySchema(v any, s *schemaType) any {
	switch x := v.(type) {
	case json.Number:
		return parseNumber(string(x), s)
	case map[string]any:
		for name, member := range x {
			switch member.(type) {
			case json.Number, map[string]any, []any:
				x[name] = applySchema(member, shapeOfField(s, name))
			}
		}
	case []any:
		var items *schemaType
		if s != nil {
			items = s.items
		}
		for i, member := range x {
			x[i] = applySchema(member, items)
		}
	}
	return v
}

func shapeOfField(s *schemaType, name string) *schemaType {
	if s == nil {
		return nil
	}
	return s.fields[name]
}

func parseNumber(text string, s *schemaType) any {
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
