package expr

import (
	"cmp"
	"math"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// nativeValue converts a value of cel-go into one of the types of DecodeData, a time or a duration.
// It returns others unchanged: lists, objects, bytes.
func nativeValue(v ref.Val) any {
	switch x := v.(type) {
	case types.Null:
		return nil
	case types.Bool:
		return bool(x)
	case types.Int:
		return int64(x)
	case types.Uint:
		if x <= math.MaxInt64 {
			return int64(x)
		}
	case types.Double:
		return float64(x)
	case types.String:
		return string(x)
	case types.Timestamp:
		return x.Time
	case types.Duration:
		return x.Duration
	}
	return v
}

// equalInCEL is equal for values that only cel-go can compare.
func equalInCEL(a, b any) bool {
	adapt := types.DefaultTypeAdapter
	return types.Equal(adapt.NativeToValue(a), adapt.NativeToValue(b)) == types.True
}

// compareInCEL is compare for values that only cel-go can compare.
func compareInCEL(a, b any) (order int, ok bool) {
	adapt := types.DefaultTypeAdapter
	x, ok := adapt.NativeToValue(a).(traits.Comparer)
	if !ok {
		return 0, false
	}
	found, ok := x.Compare(adapt.NativeToValue(b)).(types.Int)
	return int(found), ok
}

// equal is CEL's ==. Numbers compare by value across int and double; an int is rounded to a double
// to compare with one, so that neighbours above 2^53 are equal. Values of different types differ,
// and null equals null.
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
		case ref.Val:
			return equalInCEL(x, y)
		}
		return false
	case float64:
		switch y := b.(type) {
		case int64:
			return x == float64(y)
		case float64:
			return x == y
		case ref.Val:
			return equalInCEL(x, y)
		}
		return false
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	case time.Duration:
		y, ok := b.(time.Duration)
		return ok && x == y
	}
	return equalInCEL(a, b)
}

// compare is CEL's order: of numbers across int and double, strings by code point, Booleans, times
// and durations. It is not ok for anything else, which is an error in CEL.
func compare(a, b any) (order int, ok bool) {
	switch x := a.(type) {
	case bool:
		if y, isBool := b.(bool); isBool {
			return int(TruthOf(x)) - int(TruthOf(y)), true
		}
	case string:
		if y, isText := b.(string); isText {
			return strings.Compare(x, y), true
		}
	case int64:
		if y, isInt := b.(int64); isInt {
			return cmp.Compare(x, y), true
		}
		if y, isDouble := b.(float64); isDouble {
			return compareDoubles(float64(x), y)
		}
	case float64:
		if y, isNumber := ToFloat(b); isNumber {
			return compareDoubles(x, y)
		}
	case time.Time:
		if y, isTime := b.(time.Time); isTime {
			return x.Compare(y), true
		}
	case time.Duration:
		if y, isDuration := b.(time.Duration); isDuration {
			return cmp.Compare(x, y), true
		}
	}
	_, x := a.(ref.Val)
	if _, y := b.(ref.Val); x || y {
		return compareInCEL(a, b)
	}
	return 0, false
}

// compareDoubles is not ok if one of them is NaN.
func compareDoubles(x, y float64) (order int, ok bool) {
	return cmp.Compare(x, y), !math.IsNaN(x) && !math.IsNaN(y)
}

// ToFloat returns a number as a double. It is not ok for NaN, which has no order and equals
// nothing.
func ToFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, !math.IsNaN(x)
	case types.Uint: // beyond int64
		return float64(x), true
	}
	return 0, false
}
