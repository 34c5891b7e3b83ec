package condition

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"fanfare.dev/fanfare"
)

// A param is a value that every subscription to a rule brings along.
type param struct {
	name   string
	kind   kind // kindDouble, kindString, kindBool, or kindList of strings
	column int  // among the numbers of a row, or among its texts
}

// isNumber tells in which half of a row the param is kept.
func (p param) isNumber() bool { return p.kind == kindDouble }

// expected tells a person what to give.
func (p param) expected() string {
	if p.kind == kindList {
		return "a list of strings"
	}
	return p.kind.String()
}

// readParamTypes turns a rule's declaration into columns, in order of names.
func readParamTypes(rule string, types map[string]string) ([]param, error) {
	params := make([]param, 0, len(types))
	for name := range types {
		params = append(params, param{name: name})
	}
	slices.SortFunc(params, func(a, b param) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	var numbers, texts int
	for i := range params {
		p := &params[i]
		where := rule + "/params" + pointer(p.name)
		if !identifier.MatchString(p.name) {
			return nil, invalid(where, "the name of a param must be letters, digits and _")
		}
		switch types[p.name] {
		case "number":
			p.kind, p.column = kindDouble, numbers
			numbers++
		case "string":
			p.kind, p.column = kindString, texts
			texts++
		case "boolean":
			p.kind, p.column = kindBool, texts
			texts++
		case "strings":
			p.kind, p.column = kindList, texts
			texts++
		default:
			e := invalid(where, "unknown type %q of param %q", types[p.name], p.name)
			e.Hint = "use number, string, boolean or strings"
			return nil, e
		}
	}
	return params, nil
}

// paramValues are the params of one subscription, in the order of its rule's columns.
type paramValues struct {
	numbers []float64
	texts   []string // a boolean is "true" or "false", a list is its listText
}

// readParams checks raw against params: an object with every param and no other.
// The first fault is the error, the others are its details.
func readParams(raw json.RawMessage, params []param) (paramValues, error) {
	if v, ok := readSimpleParams(raw, params); ok {
		return v, nil
	}
	return readAnyParams(raw, params)
}

// readAnyParams reads what readPlain does not.
func readAnyParams(raw json.RawMessage, params []param) (paramValues, error) {
	var given map[string]json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return paramValues{}, invalid("/params", "the params are not a JSON object")
		}
	}
	var v paramValues
	var faults []*fanfare.Error
	for _, p := range params {
		text, ok := given[p.name]
		if !ok {
			faults = append(faults, invalid(pointer("params", p.name), "the rule needs param %q, %s", p.name, p.expected()))
			continue
		}
		if !v.readValue(text, p) {
			faults = append(faults, invalid(pointer("params", p.name), "param %q must be %s", p.name, p.expected()))
		}
	}
	if len(faults) > 0 || len(given) > len(params) {
		faults = append(faults, unknownParams(given, params)...)
	}
	if len(faults) > 0 {
		first := faults[0]
		first.Details = faults[1:]
		return paramValues{}, first
	}
	return v, nil
}

func (v *paramValues) readValue(text json.RawMessage, p param) bool {
	switch p.kind {
	case kindDouble:
		f, err := strconv.ParseFloat(string(text), 64)
		// What ParseFloat takes beyond JSON (inf, hex) never passed the JSON reader.
		if err != nil || math.IsInf(f, 0) {
			return false
		}
		v.numbers = append(v.numbers, f+0) // -0 becomes 0
	case kindString:
		var s string
		if len(text) == 0 || text[0] != '"' || json.Unmarshal(text, &s) != nil {
			return false
		}
		v.texts = append(v.texts, s)
	case kindBool:
		s := string(text)
		if s != "true" && s != "false" {
			return false
		}
		v.texts = append(v.texts, s)
	case kindList:
		list, ok := listText(text)
		if !ok {
			return false
		}
		v.texts = append(v.texts, list)
	}
	return true
}

func unknownParams(given map[string]json.RawMessage, params []param) []*fanfare.Error {
	sc := scope{params: params}
	var faults []*fanfare.Error
	for name := range given {
		if _, ok := sc.param(name); !ok {
			faults = append(faults, unknownMember(invalid(pointer("params", name), ""), "param", name, sc.paramNames()))
		}
	}
	slices.SortFunc(faults, func(a, b *fanfare.Error) int { return bytes.Compare([]byte(a.Pointer), []byte(b.Pointer)) })
	return faults
}
