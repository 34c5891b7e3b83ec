//go:build peers

package peers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// drawFilter draws a condition over the fields that an event has.
func (d *dataset) drawFilter(r *rand.Rand) string { return d.compound(r, r.IntN(4)) }

func (d *dataset) compound(r *rand.Rand, depth int) string {
	if depth == 0 {
		return d.atom(r)
	}
	a, b := d.compound(r, depth-1), d.compound(r, r.IntN(depth))
	switch r.IntN(12) {
	case 0, 1, 2:
		return a + " && " + b
	case 3, 4, 5:
		return "(" + a + ") && (" + b + ")"
	case 6, 7:
		return b + " || " + a
	case 8:
		return "(" + a + " || " + b + ") && " + d.atom(r)
	case 9:
		return "!(" + a + ") && " + b
	case 10:
		return b + " && (" + a + " && " + d.atom(r) + ")"
	default:
		return "(" + d.atom(r) + " ? " + a + " : " + b + ")"
	}
}

func (d *dataset) atom(r *rand.Rand) string {
	data := d.data[r.IntN(len(d.data))]
	fields := sortedNames(data)
	name := fields[r.IntN(len(fields))]
	at, v := "event["+quoted(name)+"]", data[name]
	if inner, ok := v.(map[string]any); ok {
		fields = sortedNames(inner)
		name = fields[r.IntN(len(fields))]
		at, v = at+"["+quoted(name)+"]", inner[name]
	}
	switch v := v.(type) {
	case nil:
		return at + [...]string{" == null", " != null"}[r.IntN(2)]
	case bool:
		return fmt.Sprintf("%s == %v", at, v)
	case json.Number:
		op := [...]string{"==", "!=", "<", "<=", ">", ">="}[r.IntN(6)]
		if r.IntN(4) == 0 {
			return fmt.Sprintf("%s >= %s && %s < %s", at, v, at, d.pick(r, d.fieldOf(r), isNumber))
		}
		return fmt.Sprintf("%s %s %s", at, op, v)
	case string:
		half := v[:strings.LastIndexFunc(v[:len(v)/2+1], func(rune) bool { return true })]
		switch r.IntN(7) {
		case 0:
			return fmt.Sprintf("contains_ci(%s, %s)", at, quoted(half))
		case 1:
			return fmt.Sprintf("starts_with_ci(%s, %s)", at, quoted(strings.ToUpper(half)))
		case 2:
			return fmt.Sprintf("%s.endsWith(%s)", at, quoted(v[len(half):]))
		case 3:
			return fmt.Sprintf("%s in [%s, 'x', %s]", at, quoted(v), quoted(half))
		case 4:
			return fmt.Sprintf("%s != %s", at, quoted(v))
		case 5:
			if strings.Contains(name, " ") || strings.Contains(at, "][") {
				return at + " != null"
			}
			return "has(event." + name + ")"
		default:
			return fmt.Sprintf("%s == %s", at, quoted(v))
		}
	case []any:
		one := quoted(v[r.IntN(len(v))].(string))
		return [...]string{
			one + " in " + at,
			fmt.Sprintf("%s.exists(e, e == %s)", at, one),
			fmt.Sprintf("%s.all(e, e != %s)", at, one),
			fmt.Sprintf("size(%s) > %d", at, r.IntN(5)),
		}[r.IntN(4)]
	}
	return "true"
}

func (d *dataset) fieldOf(r *rand.Rand) string {
	for {
		data := d.data[r.IntN(len(d.data))]
		names := sortedNames(data)
		if name := names[r.IntN(len(names))]; isNumber(data[name]) {
			return name
		}
	}
}

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}
