package evaluator

import (
	"cmp"
	"math"
	"strings"
	"time"
)

type kind uint8

const (
	kindError     kind = iota // str contains the reason
	kindUndecided             // str contains the reason; see Verdict
	kindNull
	kindBool
	kindInt
	kindUint
	kindDouble
	kindString
	kindBytes
	kindList
	kindMap
	kindTime
	kindDuration
	kindType
)

// typeNames are the results of type().
var typeNames = [...]string{kindNull: "null_type", kindBool: "bool", kindInt: "int", kindUint: "uint", kindDouble: "double",
	kindString: "string", kindBytes: "bytes", kindList: "list", kindMap: "map", kindTime: "google.protobuf.Timestamp",
	kindDuration: "google.protobuf.Duration", kindType: "type"}

// A value is the value of a node of a condition for an event. The zero value is an error.
type value struct {
	kind  kind
	nanos int32      // of a time: the part of a second
	num   uint64     // a boolean, the bits of a number, seconds since 1970, nanoseconds of a duration
	str   string     // text, bytes, the name of a type, the reason of an error
	ref   *composite // of a list, of a map, and of a time that is not in UTC
}

// A composite holds the parts of a value that do not fit into it. It is never changed after it is
// shared.
type composite struct {
	items     []value          // the elements of a list, the values of a map
	keys      []value          // the keys of a map, in no promised order
	index     map[string]int32 // text keys to places, where they are many
	unordered bool             // of a list: it was created from the keys of a map, which have no order
	offset    int32            // of a time: seconds east of UTC
}

// indexedKeys is the number of keys above which a map has an index.
const indexedKeys = 8

var (
	falseValue = value{kind: kindBool}
	trueValue  = value{kind: kindBool, num: 1}
	nullValue  = value{kind: kindNull}
)

func boolValue(b bool) value {
	if b {
		return trueValue
	}
	return falseValue
}

func intValue(n int64) value      { return value{kind: kindInt, num: uint64(n)} }
func uintValue(n uint64) value    { return value{kind: kindUint, num: n} }
func doubleValue(d float64) value { return value{kind: kindDouble, num: math.Float64bits(d)} }
func stringValue(s string) value  { return value{kind: kindString, str: s} }
func errorValue(why string) value { return value{kind: kindError, str: why} }
func undecided(why string) value  { return value{kind: kindUndecided, str: why} }

func durationValue(d time.Duration) value { return value{kind: kindDuration, num: uint64(d)} }

func listValue(items []value) value {
	return value{kind: kindList, ref: &composite{items: items}}
}

func (v value) int() int64              { return int64(v.num) }
func (v value) double() float64         { return math.Float64frombits(v.num) }
func (v value) isTrue() bool            { return v.num != 0 }
func (v value) duration() time.Duration { return time.Duration(v.num) }

// decided reports whether v is neither an error nor undecided.
func (v value) decided() bool { return v.kind > kindUndecided }

func (v value) isNumber() bool { return v.kind >= kindInt && v.kind <= kindDouble }

// hasOrder reports whether values of the kind have an order.
func (v value) hasOrder() bool {
	return v.kind >= kindBool && v.kind <= kindBytes || v.kind == kindTime || v.kind == kindDuration
}

func isNaN(v value) bool { return v.kind == kindDouble && math.IsNaN(v.double()) }

// asDouble converts a number of any kind to a double.
func (v value) asDouble() float64 {
	switch v.kind {
	case kindInt:
		return float64(v.int())
	case kindUint:
		return float64(v.num)
	default:
		return v.double()
	}
}

// mapValue returns a map of keys and values. CEL allows only booleans, integers and texts as keys,
// and refuses duplicate keys. Some engines accept both, so such a map is undecided.
func mapValue(keys, items []value) value {
	m := &composite{}
	for i, key := range keys {
		if k := key.kind; k != kindBool && k != kindInt && k != kindUint && k != kindString {
			return undecided("a " + typeNames[k] + " cannot be a key")
		}
		if m.lookup(key) >= 0 {
			return undecided("the map contains the same key twice")
		}
		m.keys, m.items = append(m.keys, key), append(m.items, items[i])
		m.indexKey(len(m.keys) - 1)
	}
	return value{kind: kindMap, ref: m}
}

// indexKey adds the key that was appended last to the index.
func (m *composite) indexKey(at int) {
	switch {
	case len(m.keys) <= indexedKeys:
	case m.index != nil:
		if m.keys[at].kind == kindString {
			m.index[m.keys[at].str] = int32(at)
		}
	default:
		m.index = make(map[string]int32, 2*len(m.keys))
		for i, key := range m.keys {
			if key.kind == kindString {
				m.index[key.str] = int32(i)
			}
		}
	}
}

// find returns the position of a key of the same kind, or -1.
func (m *composite) find(key value) int {
	if key.kind == kindString {
		return m.findText(key.str)
	}
	for i := range m.keys {
		k := &m.keys[i]
		if k.kind == key.kind && equal(*k, key) == equalYes {
			return i
		}
	}
	return -1
}

func (m *composite) findText(key string) int {
	if m.index != nil {
		if at, ok := m.index[key]; ok {
			return int(at)
		}
		return -1
	}
	for i := range m.keys {
		if m.keys[i].kind == kindString && m.keys[i].str == key {
			return i
		}
	}
	return -1
}

// lookup returns the position of a key, or -1. A number is also found as an integer of either
// kind: 1.0 finds 1 and 1u.
func (m *composite) lookup(key value) int {
	at := m.find(key)
	if at >= 0 || !key.isNumber() {
		return at
	}
	for _, other := range integers(key) {
		if other.kind != key.kind {
			if at := m.find(other); at >= 0 {
				return at
			}
		}
	}
	return -1
}

// integers returns the integers that equal a number.
func integers(v value) []value {
	var found []value
	switch v.kind {
	case kindInt:
		found = append(found, v)
		if v.int() >= 0 {
			found = append(found, uintValue(v.num))
		}
	case kindUint:
		if v.num <= math.MaxInt64 {
			found = append(found, intValue(int64(v.num)))
		}
		found = append(found, v)
	case kindDouble:
		d := v.double()
		if d != math.Trunc(d) {
			return nil
		}
		if d >= -1<<63 && d < 1<<63 {
			found = append(found, intValue(int64(d)))
		}
		if d >= 0 && d < 1<<64 {
			found = append(found, uintValue(uint64(d)))
		}
	}
	return found
}

// equality is the result of ==. It is unknown whether two lists without an order are equal.
type equality uint8

const (
	equalNo equality = iota
	equalYes
	equalUnknown
)

func equalIf(yes bool) equality {
	if yes {
		return equalYes
	}
	return equalNo
}

// equal compares two values. Numbers of different kinds are equal by value, and an integer is
// compared with a double as a double. Other values of different kinds differ.
func equal(a, b value) equality {
	if a.kind != b.kind {
		if a.isNumber() && b.isNumber() {
			order, ordered := compareNumbers(a, b)
			return equalIf(ordered && order == 0)
		}
		return equalNo
	}
	switch a.kind {
	case kindNull:
		return equalYes
	case kindDouble:
		return equalIf(a.double() == b.double())
	case kindString, kindBytes, kindType:
		return equalIf(a.str == b.str)
	case kindTime:
		return equalIf(a.num == b.num && a.nanos == b.nanos)
	case kindList:
		return equalLists(a.ref, b.ref)
	case kindMap:
		return equalMaps(a.ref, b.ref)
	default:
		return equalIf(a.num == b.num)
	}
}

func equalLists(a, b *composite) equality {
	if len(a.items) != len(b.items) {
		return equalNo
	}
	if (a.unordered || b.unordered) && len(a.items) > 1 {
		return equalUnknown
	}
	all := equalYes
	for i := range a.items {
		switch equal(a.items[i], b.items[i]) {
		case equalNo:
			return equalNo
		case equalUnknown:
			all = equalUnknown
		}
	}
	return all
}

func equalMaps(a, b *composite) equality {
	if len(a.keys) != len(b.keys) {
		return equalNo
	}
	all := equalYes
	for i := range a.keys {
		at := b.lookup(a.keys[i])
		if at < 0 {
			return equalNo
		}
		switch equal(a.items[i], b.items[at]) {
		case equalNo:
			return equalNo
		case equalUnknown:
			all = equalUnknown
		}
	}
	return all
}

// compareNumbers compares two numbers of any kinds; NaN has no order.
func compareNumbers(a, b value) (order int, ordered bool) {
	switch {
	case a.kind == kindInt && b.kind == kindInt:
		return cmp.Compare(a.int(), b.int()), true
	case a.kind == kindUint && b.kind == kindUint:
		return cmp.Compare(a.num, b.num), true
	case a.kind == kindInt && b.kind == kindUint:
		if a.int() < 0 {
			return -1, true
		}
		return cmp.Compare(a.num, b.num), true
	case a.kind == kindUint && b.kind == kindInt:
		if b.int() < 0 {
			return 1, true
		}
		return cmp.Compare(a.num, b.num), true
	}
	x, y := a.asDouble(), b.asDouble()
	switch {
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	default:
		return 0, x == y
	}
}

// compare compares two values. ok is false if their kinds have no order; ordered is false if one
// of them is NaN.
func compare(a, b value) (order int, ordered, ok bool) {
	if a.isNumber() && b.isNumber() {
		order, ordered = compareNumbers(a, b)
		return order, ordered, true
	}
	if a.kind != b.kind {
		return 0, false, false
	}
	switch a.kind {
	case kindBool:
		return cmp.Compare(a.num, b.num), true, true
	case kindString, kindBytes:
		return strings.Compare(a.str, b.str), true, true
	case kindTime:
		if order = cmp.Compare(a.int(), b.int()); order == 0 {
			order = cmp.Compare(a.nanos, b.nanos)
		}
		return order, true, true
	case kindDuration:
		return cmp.Compare(a.int(), b.int()), true, true
	default:
		return 0, false, false
	}
}
