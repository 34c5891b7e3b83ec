package match

import (
	"cmp"
	"strings"

	"cel.dev/cel-go/common/types"
)

// equal is CEL's ==: numbers by their value across int and double (an int is
// rounded to a double to meet one, so above 2^53 neighbours are equal), unlike
// things differ, null equals null.
func equal(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case string:
		y, ok := b.(string)
		return ok && x == y
	case int64:
		switch y := b.(type) {
		case int64:
			return x == y
		case float64:
			return float64(x) == y
		}
		return false
	case float64:
		switch y := b.(type) {
		case int64:
			return x == float64(y)
		case float64:
			return x == y
		}
		return false
	}
	switch b.(type) {
	case []any, map[string]any:
		adapt := types.DefaultTypeAdapter
		return types.Equal(adapt.NativeToValue(a), adapt.NativeToValue(b)) == types.True
	}
	return false
}

// compare is CEL's order: numbers across int and double, strings by code point,
// false before true. It is not ok for anything else: an error in CEL.
func compare(a, b any) (order int, ok bool) {
	switch x := a.(type) {
	case bool:
		if y, isBool := b.(bool); isBool {
			return int(truthOf(x)) - int(truthOf(y)), true
		}
	case string:
		if y, isText := b.(string); isText {
			return strings.Compare(x, y), true
		}
	case int64:
		switch y := b.(type) {
		case int64:
			return cmp.Compare(x, y), true
		case float64:
			return cmp.Compare(float64(x), y), true
		}
	case float64:
		switch y := b.(type) {
		case int64:
			return cmp.Compare(x, float64(y)), true
		case float64:
			return cmp.Compare(x, y), true
		}
	}
	return 0, false
}

// toFloat returns a number as a double, the way a comparison with a double sees it.
func toFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}
