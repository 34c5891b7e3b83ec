package selfservice

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// paramsText writes the params of a rule for people: name: value, name: one, two.
func paramsText(params map[string]any) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		all = append(all, strings.ReplaceAll(name, "_", " ")+": "+paramText(params[name]))
	}
	return strings.Join(all, "; ")
}

func paramText(v any) string {
	if list, ok := v.([]any); ok {
		var all []string
		for _, one := range list {
			all = append(all, paramText(one))
		}
		return strings.Join(all, ", ")
	}
	return fmt.Sprint(v)
}

// distinct keeps the first of each.
func distinct(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
