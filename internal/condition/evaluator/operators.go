package evaluator

import (
	"math"
	"time"
)

const (
	noOverload   = "no such overload"
	intOverflow  = "the integer does not fit into 64 bits"
	uintOverflow = "the unsigned integer does not fit into 64 bits"
	byZero       = "division by zero"
	noOrder      = "map keys have no order"
)

func notFunction(_ *node, a value) value {
	if a.kind != kindBool {
		return errorValue(noOverload)
	}
	return boolValue(!a.isTrue())
}

func negate(_ *node, a value) value {
	switch a.kind {
	case kindInt:
		if a.int() == math.MinInt64 {
			return errorValue(intOverflow)
		}
		return intValue(-a.int())
	case kindDouble:
		return doubleValue(-a.double())
	case kindDuration:
		if a.int() == math.MinInt64 {
			return errorValue(durationOverflow)
		}
		return durationValue(-a.duration())
	}
	return errorValue(noOverload)
}

func add(_ *node, a, b value) value {
	switch {
	case a.kind == kindTime && b.kind == kindDuration:
		return addToTime(a, b.duration())
	case a.kind == kindDuration && b.kind == kindTime:
		return addToTime(b, a.duration())
	case a.kind != b.kind:
		return errorValue(noOverload)
	}
	switch a.kind {
	case kindInt:
		sum, ok := addInt(a.int(), b.int())
		return intOr(sum, ok)
	case kindUint:
		if a.num+b.num < a.num {
			return errorValue(uintOverflow)
		}
		return uintValue(a.num + b.num)
	case kindDouble:
		return doubleValue(a.double() + b.double())
	case kindString, kindBytes:
		return value{kind: a.kind, str: a.str + b.str}
	case kindList:
		joined := make([]value, 0, len(a.ref.items)+len(b.ref.items))
		joined = append(append(joined, a.ref.items...), b.ref.items...)
		return value{kind: kindList, ref: &composite{items: joined, unordered: a.ref.unordered || b.ref.unordered}}
	case kindDuration:
		sum, ok := addInt(a.int(), b.int())
		return durationOr(sum, ok)
	}
	return errorValue(noOverload)
}

func subtract(_ *node, a, b value) value {
	if a.kind == kindTime && b.kind == kindDuration {
		return subtractDuration(a, b.duration())
	}
	if a.kind != b.kind {
		return errorValue(noOverload)
	}
	switch a.kind {
	case kindInt:
		difference, ok := subInt(a.int(), b.int())
		return intOr(difference, ok)
	case kindUint:
		if b.num > a.num {
			return errorValue(uintOverflow)
		}
		return uintValue(a.num - b.num)
	case kindDouble:
		return doubleValue(a.double() - b.double())
	case kindTime:
		return subtractTimes(a, b)
	case kindDuration:
		difference, ok := subInt(a.int(), b.int())
		return durationOr(difference, ok)
	}
	return errorValue(noOverload)
}

func multiply(a, b value) value {
	switch a.kind {
	case kindInt:
		product, ok := mulInt(a.int(), b.int())
		return intOr(product, ok)
	case kindUint:
		if b.num != 0 && a.num > math.MaxUint64/b.num {
			return errorValue(uintOverflow)
		}
		return uintValue(a.num * b.num)
	case kindDouble:
		return doubleValue(a.double() * b.double())
	}
	return errorValue(noOverload)
}

func divide(a, b value) value {
	switch a.kind {
	case kindInt:
		if why := divisible(a, b); why != "" {
			return errorValue(why)
		}
		return intValue(a.int() / b.int())
	case kindUint:
		if b.num == 0 {
			return errorValue(byZero)
		}
		return uintValue(a.num / b.num)
	case kindDouble:
		return doubleValue(a.double() / b.double())
	}
	return errorValue(noOverload)
}

func remainder(a, b value) value {
	switch a.kind {
	case kindInt:
		if why := divisible(a, b); why != "" {
			return errorValue(why)
		}
		return intValue(a.int() % b.int())
	case kindUint:
		if b.num == 0 {
			return errorValue(byZero)
		}
		return uintValue(a.num % b.num)
	}
	return errorValue(noOverload)
}

// divisible returns why an integer cannot be divided by another.
func divisible(a, b value) string {
	switch {
	case b.int() == 0:
		return byZero
	case a.int() == math.MinInt64 && b.int() == -1:
		return intOverflow
	default:
		return ""
	}
}

func intOr(n int64, ok bool) value {
	if !ok {
		return errorValue(intOverflow)
	}
	return intValue(n)
}

func durationOr(n int64, ok bool) value {
	if !ok {
		return errorValue(durationOverflow)
	}
	return durationValue(time.Duration(n))
}

func equals(_ *node, a, b value) value {
	switch equal(a, b) {
	case equalYes:
		return trueValue
	case equalNo:
		return falseValue
	default:
		return undecided(noOrder)
	}
}

func differs(n *node, a, b value) value {
	same := equals(n, a, b)
	if !same.decided() {
		return same
	}
	return boolValue(!same.isTrue())
}

// sameKind returns an operator that refuses operands of different kinds.
func sameKind(apply func(a, b value) value) func(*node, value, value) value {
	return func(_ *node, a, b value) value {
		if a.kind != b.kind {
			return errorValue(noOverload)
		}
		return apply(a, b)
	}
}

// ordering returns an operator that is true for the orders that holds accepts. NaN is neither
// below nor above any value; as in cel-go, this includes values of other kinds that have an order,
// and all values if NaN is on the right.
func ordering(holds func(order int) bool) func(*node, value, value) value {
	return func(_ *node, a, b value) value {
		order, ordered, ok := compare(a, b)
		if ok || isNaN(a) || isNaN(b) && a.hasOrder() {
			return boolValue(ordered && holds(order))
		}
		return errorValue(noOverload)
	}
}

// isIn reports whether a list contains an element, or a map a key.
func isIn(_ *node, a, b value) value {
	switch b.kind {
	case kindList:
		if a.kind == kindString {
			return boolValue(hasText(b.ref.items, a.str))
		}
		found := falseValue
		for _, item := range b.ref.items {
			switch equal(a, item) {
			case equalYes:
				return trueValue
			case equalUnknown:
				found = undecided(noOrder)
			}
		}
		return found
	case kindMap:
		if a.kind == kindBytes {
			return undecided("bytes cannot be a key") // cel-go stops here
		}
		return boolValue(b.ref.lookup(a) >= 0)
	}
	return errorValue(noOverload)
}

func hasText(items []value, text string) bool {
	for i := range items {
		if items[i].kind == kindString && items[i].str == text {
			return true
		}
	}
	return false
}

// index returns an element of a list, or the value of a key.
func index(_ *node, a, b value) value {
	switch a.kind {
	case kindList:
		at := integers(b)
		if len(at) == 0 || at[0].kind != kindInt {
			return errorValue("no such index")
		}
		i := at[0].int()
		if i < 0 || i >= int64(len(a.ref.items)) {
			return errorValue("the index is out of range")
		}
		if a.ref.unordered && len(a.ref.items) > 1 {
			return undecided(noOrder)
		}
		return a.ref.items[i]
	case kindMap:
		if b.kind == kindNull || b.kind > kindString {
			return errorValue("no such key")
		}
		if at := a.ref.lookup(b); at >= 0 {
			return a.ref.items[at]
		}
		if b.kind == kindString {
			return errorValue("no such key " + b.str)
		}
	}
	return errorValue("no such key")
}

// selectField returns a field of a map; why is the error if the field is missing.
func selectField(a value, name, why string) value {
	if a.kind == kindMap {
		if at := a.ref.findText(name); at >= 0 {
			return a.ref.items[at]
		}
	}
	return errorValue(why)
}

// hasField evaluates has(). A value that is neither a map nor a list has no field.
func hasField(a value, name string) value {
	switch a.kind {
	case kindMap:
		return boolValue(a.ref.findText(name) >= 0)
	case kindList:
		return errorValue("a list has no fields")
	}
	return falseValue
}
