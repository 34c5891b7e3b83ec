package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// said writes the params of a rule for people: name: value, name: one, two.
func said(params map[string]any) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		all = append(all, strings.ReplaceAll(name, "_", " ")+": "+saidValue(params[name]))
	}
	return strings.Join(all, "; ")
}

func saidValue(v any) string {
	if list, ok := v.([]any); ok {
		var all []string
		for _, one := range list {
			all = append(all, saidValue(one))
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
