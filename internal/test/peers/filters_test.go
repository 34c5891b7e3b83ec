//go:build peers

package peers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"
)

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// drawFilter draws a condition over the fields of an event of the set: up to four
// levels of &&, ||, ! and ?:, with brackets that CEL does not need.
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

var isName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString

// atom draws one question about a field, with a value that an event has.
func (d *dataset) atom(r *rand.Rand) string {
	if r.IntN(12) == 0 {
		return d.special(r)
	}
	at, v := d.drawField(r)
	switch v := v.(type) {
	case nil:
		return at + oneText(r, " == null", " != null")
	case bool:
		return fmt.Sprintf("%s == %v", at, v)
	case json.Number:
		return d.aboutNumber(r, at, v)
	case string:
		return d.aboutText(r, at, v)
	case []any:
		return aboutList(r, at, v)
	}
	return "true"
}

// drawField draws a field that one of the events has, in one of the ways to write
// it, and its value there.
func (d *dataset) drawField(r *rand.Rand) (at string, v any) {
	data := d.data[r.IntN(len(d.data))]
	names := sortedNames(data)
	name := names[r.IntN(len(names))]
	at, v = "event["+quoted(name)+"]", data[name]
	if isName(name) && r.IntN(2) == 0 {
		at = "event." + name
		if d.hasSchema && name != "type" && r.IntN(2) == 0 {
			at = name
		}
	}
	if inner, ok := v.(map[string]any); ok {
		names = sortedNames(inner)
		name = names[r.IntN(len(names))]
		at, v = at+"."+name, inner[name]
	}
	return at, v
}

func (d *dataset) aboutNumber(r *rand.Rand, at string, v json.Number) string {
	other := func() (string, json.Number) {
		for {
			if at, v := d.drawField(r); isNumber(v) {
				return at, v.(json.Number)
			}
		}
	}
	op := oneText(r, "==", "!=", "<", "<=", ">", ">=")
	switch r.IntN(10) {
	case 0:
		_, to := other()
		return fmt.Sprintf("%s >= %s && %s < %s", at, v, at, to)
	case 1:
		to, _ := other()
		return fmt.Sprintf("%s %s %s", at, op, to)
	case 2:
		return fmt.Sprintf("double(%s) * 1.5 %s %s", at, op, double(v))
	case 3:
		_, to := other()
		return fmt.Sprintf("%s in [%s, %s]", at, v, to)
	case 4:
		if d.key != "" {
			return fmt.Sprintf("%s(%s, %s)", oneText(r, "crosses", "crosses_above", "crosses_below"), at, v)
		}
	}
	return fmt.Sprintf("%s %s %s", at, op, v)
}

func (d *dataset) aboutText(r *rand.Rand, at, v string) string {
	messages := []rune(v)
	first, last := string(messages[:len(messages)/2]), string(messages[len(messages)/2:])
	if _, err := time.Parse(time.RFC3339, v); err == nil && r.IntN(2) == 0 {
		zone := oneText(r, "", "'America/New_York'", "'Asia/Tokyo'")
		return fmt.Sprintf("timestamp(%s).%s(%s) %s %d", at, oneText(r, "getHours", "getDayOfWeek", "getMonth"), zone, oneText(r, "==", "<", ">="), r.IntN(12))
	}
	switch r.IntN(11) {
	case 0:
		return fmt.Sprintf("contains_ci(%s, %s)", at, quoted(strings.ToLower(first)))
	case 1:
		return fmt.Sprintf("starts_with_ci(%s, %s)", at, quoted(strings.ToUpper(first)))
	case 2:
		return fmt.Sprintf("%s.endsWith(%s)", at, quoted(last))
	case 3:
		return fmt.Sprintf("%s in [%s, 'x', %s]", at, quoted(v), quoted(last))
	case 4:
		return fmt.Sprintf("%s != %s", at, quoted(v))
	case 5:
		return fmt.Sprintf("%s.matches(%s)", at, quoted("^"+regexp.QuoteMeta(first)+".*"))
	case 6:
		return fmt.Sprintf("%s %s %s", at, oneText(r, "<", ">="), quoted(v))
	case 7:
		return fmt.Sprintf("size(%s) %s %d", at, oneText(r, "==", ">"), len(messages))
	case 8:
		if name, ok := strings.CutPrefix(at, "event."); ok && !strings.Contains(name, ".") {
			return "has(" + at + ")"
		}
		return at + " != null"
	}
	return fmt.Sprintf("%s == %s", at, quoted(v))
}

func aboutList(r *rand.Rand, at string, v []any) string {
	text, _ := v[r.IntN(len(v))].(string)
	one := quoted(text)
	switch r.IntN(7) {
	case 0, 1:
		return one + " in " + at
	case 2:
		return fmt.Sprintf("%s.exists(e, e == %s)", at, one)
	case 3:
		return fmt.Sprintf("%s.exists(e, e.startsWith(%s) && size(e) > %d)", at, quoted(text[:1]), r.IntN(4))
	case 4:
		return fmt.Sprintf("%s.all(e, e != %s)", at, one)
	case 5:
		return fmt.Sprintf("%s.filter(e, contains_ci(e, 'A')).size() > %d", at, r.IntN(3))
	default:
		return fmt.Sprintf("size(%s) > %d", at, r.IntN(5))
	}
}

// special draws a question about a place, or about an attribute of the event.
func (d *dataset) special(r *rand.Rand) string {
	if _, ok := d.data[0]["latitude"]; ok && r.IntN(3) > 0 {
		return fmt.Sprintf("geo.within(event.latitude, event.longitude, %s, %s, %d)", d.pick(r, "latitude", isNumber), d.pick(r, "longitude", isNumber), 10+r.IntN(400))
	}
	switch r.IntN(4) {
	case 0:
		return fmt.Sprintf("ce.id.endsWith('%d')", r.IntN(100))
	case 1:
		return fmt.Sprintf("ce.time.getDayOfWeek('Europe/Berlin') == %d", r.IntN(7))
	case 2:
		return fmt.Sprintf("ce.time < timestamp(%q)", d.events[r.IntN(len(d.events))].Time.Format(time.RFC3339))
	default:
		return "ce.type == " + quoted(d.name) + " && !has(ce.subject)"
	}
}

func oneText(r *rand.Rand, texts ...string) string { return texts[r.IntN(len(texts))] }

// double writes a number as one with decimals.
func double(v json.Number) string {
	if strings.ContainsAny(string(v), ".eE") {
		return string(v)
	}
	return string(v) + ".0"
}

// quoted writes a text as CEL and JSON both do.
func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // there is no such text
	}
	return string(text)
}
