package query

import (
	"cmp"
	"slices"
	"strings"
)

// A sortKey is a field by which records are sorted.
type sortKey struct {
	path       []string
	descending bool
}

// parseOrder reads one of the forms of order.
func parseOrder(v any) (keys []sortKey, err error) {
	add := func(name string, direction any) {
		key := sortKey{path: fieldPath(name)}
		switch direction {
		case 1.0, "1", "asc", "ascending":
		case -1.0, "-1", "desc", "descending":
			key.descending = true
		default:
			err = invalid("the order of %s must be asc, desc, 1 or -1, not %s", name, shown(direction))
		}
		keys = append(keys, key)
	}
	wrong := invalid(`filter.order must be [["field", "asc"]], {"field": -1} or "field -other", not %s`, shown(v))
	switch x := v.(type) {
	case string:
		for _, name := range strings.Fields(x) {
			if field, descending := strings.CutPrefix(name, "-"); descending {
				add(field, -1.0)
			} else {
				add(strings.TrimPrefix(name, "+"), 1.0)
			}
		}
	case object:
		for _, m := range x {
			add(m.name, m.value)
		}
	case []any:
		for _, one := range x {
			pair, ok := one.([]any)
			if !ok || len(pair) != 2 {
				return nil, wrong
			}
			name, ok := pair[0].(string)
			if !ok {
				return nil, wrong
			}
			add(name, pair[1])
		}
	default:
		return nil, wrong
	}
	if len(keys) > 32 {
		return nil, invalid("filter.order has more than 32 fields")
	}
	return keys, err
}

func fieldPath(name string) []string {
	path := strings.Split(name, ".")
	if path[0] == "_id" {
		path[0] = "id"
	}
	return path
}

// A projection selects the fields that are returned; without paths, all are.
type projection struct {
	paths   [][]string
	without bool // the paths are left out
	noID    bool
}

// parseFields reads one of the forms of fields.
func parseFields(v any) (p projection, err error) {
	included, excluded := false, false
	add := func(name string, include bool) {
		path := fieldPath(name)
		if len(path) == 1 && path[0] == "id" {
			p.noID = !include
			included = included || include
			return
		}
		included, excluded = included || include, excluded || !include
		p.paths = append(p.paths, path)
	}
	addName := func(name string) {
		field, without := strings.CutPrefix(name, "-")
		add(strings.TrimPrefix(field, "+"), !without)
	}
	wrong := invalid(`filter.fields must be ["field"], "field other", "-field" or {"field": true}, not %s`, shown(v))
	switch x := v.(type) {
	case string:
		for _, name := range strings.Fields(x) {
			addName(name)
		}
	case []any:
		for _, one := range x {
			name, ok := one.(string)
			if !ok {
				return p, wrong
			}
			addName(name)
		}
	case object:
		for _, m := range x {
			switch m.value {
			case true, 1.0, "true", "1":
				add(m.name, true)
			case false, 0.0, "false", "0":
				add(m.name, false)
			default:
				return p, wrong
			}
		}
	default:
		return p, wrong
	}
	if included && excluded {
		return p, invalid("filter.fields must either name the fields to return or those to leave out")
	}
	p.without = excluded
	if included && len(p.paths) == 0 {
		p.paths = [][]string{{"id"}}
	}
	return p, nil
}

// apply returns a record with the selected fields; it does not change the record.
func (p *projection) apply(record map[string]any) map[string]any {
	switch {
	case p.paths == nil && !p.noID:
		return record
	case p.paths == nil || p.without:
		record = without(record, p.paths)
	default:
		found := map[string]any{}
		if id, ok := record["id"]; ok {
			found["id"] = id
		}
		for _, path := range p.paths {
			include(found, record, path)
		}
		record = found
	}
	if p.noID {
		delete(record, "id")
	}
	return record
}

func include(into, record map[string]any, path []string) {
	v, ok := record[path[0]]
	if !ok {
		return
	}
	if len(path) == 1 {
		into[path[0]] = v
		return
	}
	into[path[0]] = includeIn(into[path[0]], v, path[1:])
	if into[path[0]] == nil {
		delete(into, path[0])
	}
}

// includeIn adds the part of v at path to what other paths have selected in it.
func includeIn(selected, v any, path []string) any {
	switch x := v.(type) {
	case map[string]any:
		inner, ok := selected.(map[string]any)
		if !ok {
			inner = map[string]any{}
		}
		include(inner, x, path)
		return inner
	case []any:
		old, _ := selected.([]any)
		list := make([]any, 0, len(x))
		for i, one := range x {
			var before any
			if i < len(old) {
				before = old[i]
			}
			if _, isObject := one.(map[string]any); isObject {
				list = append(list, includeIn(before, one, path))
			}
		}
		return list
	}
	return nil
}

func without(record map[string]any, paths [][]string) map[string]any {
	found := make(map[string]any, len(record))
	for name, v := range record {
		var inner [][]string
		excluded := false
		for _, path := range paths {
			if path[0] == name {
				excluded = excluded || len(path) == 1
				inner = append(inner, path[1:])
			}
		}
		switch {
		case excluded:
		case inner == nil:
			found[name] = v
		default:
			found[name] = withoutIn(v, inner)
		}
	}
	return found
}

func withoutIn(v any, paths [][]string) any {
	switch x := v.(type) {
	case map[string]any:
		return without(x, paths)
	case []any:
		list := make([]any, len(x))
		for i, one := range x {
			list[i] = withoutIn(one, paths)
		}
		return list
	}
	return v
}

// Ordered reports whether the client asked for an order. If not, the page can be cut out of records in
// the order in which the store returns them.
func (q *Query) Ordered() bool { return len(q.order) > 0 }

// Window returns skip and limit; a limit of 0 means all.
func (q *Query) Window() (skip, limit int) { return q.skip, q.limit }

// Page sorts the records that match, cuts out the page and selects the fields. It may reorder records, and does
// not change the records themselves.
func (q *Query) Page(records []map[string]any) []map[string]any {
	if len(q.order) > 0 {
		slices.SortStableFunc(records, q.compareRecords)
	}
	records = records[min(q.skip, len(records)):]
	if q.limit > 0 && q.limit < len(records) {
		records = records[:q.limit]
	}
	page := make([]map[string]any, len(records))
	for i, record := range records {
		page[i] = q.fields.apply(record)
	}
	return page
}

func (q *Query) compareRecords(a, b map[string]any) int {
	for _, key := range q.order {
		order := compareSorted(sortValue(a, key), sortValue(b, key))
		if key.descending {
			order = -order
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

// sortValue returns the value of a record by which it is sorted: of a list, the smallest element, or
// the largest if the order is descending.
func sortValue(record map[string]any, key sortKey) any {
	found := appendAt(&evaluation{}, nil, record, key.path)
	if len(found) == 0 {
		return missing{}
	}
	if _, isList := found[0].([]any); isList && len(found) > 1 {
		found = found[1:]
	}
	best := found[0]
	for _, one := range found[1:] {
		if order := compareSorted(one, best); order < 0 != key.descending && order != 0 {
			best = one
		}
	}
	return best
}

// rank is the place of the type of a value in MongoDB's order of types.
func rank(v any) int {
	switch v.(type) {
	case nil, missing:
		return 0
	case float64:
		return 1
	case string:
		return 2
	case map[string]any:
		return 3
	case []any:
		return 4
	}
	return 5
}

func compareSorted(a, b any) int {
	if order := cmp.Compare(rank(a), rank(b)); order != 0 {
		return order
	}
	switch b.(type) {
	case float64, string, bool:
		order, _ := compare(a, b)
		return order
	}
	return 0
}
