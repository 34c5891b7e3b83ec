package render

import (
	"errors"
	"maps"
	"slices"

	"fanfare.dev/fanfare"
)

// A kind is a sort of recipient or of event that can occur: it takes from the sample,
// which has everything, what this kind lacks.
type kind struct {
	name string // for errors
	of   func(vars map[string]any)
}

// kinds are those of recipients; direct says that messages may go to some. None of
// them shares an object that it changes.
func (t *Template) kinds(direct bool) []kind {
	ofFilter := map[string]any{"id": "sub-2", "rule": ""}
	subscribed := func(vars map[string]any, all ...any) {
		vars["subscriptions"] = all
		vars["subscription"] = all[0]
		items, _ := vars["items"].([]any)
		for i, item := range items {
			own := maps.Clone(item.(map[string]any))
			own["subscriptions"], own["subscription"] = all, all[0]
			items[i] = own
		}
	}
	without := func(vars map[string]any, names ...string) {
		one := maps.Clone(vars["subscriber"].(map[string]any))
		for _, name := range names {
			if delete(one, name); name != "attributes" {
				one[name] = ""
			}
		}
		vars["subscriber"] = one
	}
	digest := func(vars map[string]any, n, more int) {
		items, _ := vars["items"].([]any)
		vars["items"] = slices.Repeat(items[:1], n)
		vars["count"], vars["more"] = n+more, more
	}
	all := []kind{
		{"a subscription with a filter of its own, which has no rule, params and data", func(vars map[string]any) { subscribed(vars, ofFilter) }},
		{"several subscriptions, one of them with a filter of its own", func(vars map[string]any) { subscribed(vars, vars["subscription"], ofFilter) }},
		{"several subscriptions, the first of them with a filter of its own", func(vars map[string]any) { subscribed(vars, ofFilter, vars["subscription"]) }},
		{"a recipient without attributes", func(vars map[string]any) { without(vars, "attributes") }},
		{"a recipient without locale and time zone", func(vars map[string]any) { without(vars, "locale", "time_zone") }},
		{"a server without links", func(vars map[string]any) { vars["unsubscribe_url"], vars["preferences_url"] = "", "" }},
		{"a subscription with a filter of its own, of a recipient without attributes, locale and time zone", func(vars map[string]any) {
			subscribed(vars, ofFilter)
			without(vars, "attributes", "locale", "time_zone")
		}},
	}
	if direct && !t.Digest() {
		all = append(all, kind{"a message, whose recipient has no subscription", func(vars map[string]any) {
			delete(vars, "subscription")
			vars["subscriptions"] = []any{}
		}})
	}
	if t.Digest() {
		all = append(all, kind{"a digest of one event", func(vars map[string]any) { digest(vars, 1, 0) }},
			kind{"a digest of many events", func(vars map[string]any) { digest(vars, 3, 2) }},
			kind{"a digest of many events that all are told of", func(vars map[string]any) { digest(vars, 3, 0) }})
	}
	return all
}

// tryKinds renders the template for every kind of recipient, and that with an event
// that lacks what the schema lets it lack. vars is the sample.
func (t *Template) tryKinds(vars map[string]any, root any) error {
	least := vars["event"]
	if root != nil {
		least = settleSample(leastSample(root, root, vars["event"], 0))
	}
	events := []kind{{"", func(map[string]any) {}}, {"an event that has only what the schema requires", func(vars map[string]any) {
		vars[fieldsVariable] = newFields(map[string]any{}, plainNames(least), "https://example.org/u/sample")
		if items, ok := vars["items"].([]any); ok && t.Digest() {
			for i, item := range items {
				own := maps.Clone(item.(map[string]any))
				own["event"] = least
				items[i] = own
			}
			return
		}
		vars["event"] = least
	}}}
	if root == nil { // nobody knows what it may lack
		events = events[:1]
	}
	none := kind{"", func(map[string]any) {}}
	for _, event := range events {
		for _, of := range append([]kind{none}, t.kinds(root == nil)...) {
			own := maps.Clone(vars)
			if items, ok := own["items"].([]any); ok {
				own["items"] = slices.Clone(items)
			}
			of.of(own)
			event.of(own)
			if err := t.tryAll(own, nil); err != nil {
				return ofKind(err, of.name, event.name)
			}
		}
	}
	return nil
}

// ofKind says for whom a template fails.
func ofKind(err error, names ...string) error {
	wrong, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err
	}
	told := *wrong
	for i, name := range slices.DeleteFunc(names, func(name string) bool { return name == "" }) {
		told.Message += [...]string{" (tried with ", " and "}[min(i, 1)] + name
	}
	if told.Message != wrong.Message {
		told.Message += ")"
	}
	return &told
}

// leastSample makes a value of a schema that has no more than it must: no member that
// is not required, no element, and null where that may stand. Where it cannot tell, it
// takes the whole value, which has everything.
func leastSample(root, schema, whole any, depth int) any {
	one, ok := schema.(map[string]any)
	if !ok || depth > maxDepth/4 {
		return whole
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf", "if", "not", "minProperties", "dependentRequired", "dependentSchemas", "patternProperties", "minItems", "contains", "prefixItems"} {
		if _, ok := one[word]; ok {
			return whole
		}
	}
	if ref, ok := one["$ref"].(string); ok {
		if target, ok := dereference(root, ref); ok {
			return leastSample(root, target, whole, depth+1)
		}
	}
	if nullable(one) {
		return nil
	}
	properties, _ := one["properties"].(map[string]any)
	switch kinds := types(one); {
	case slices.Equal(kinds, []string{"object"}), len(kinds) == 0 && properties != nil:
		object := map[string]any{}
		required, _ := one["required"].([]any)
		members, _ := whole.(map[string]any)
		for _, name := range required {
			if name, ok := name.(string); ok {
				object[name] = leastSample(root, properties[name], members[name], depth+1)
			}
		}
		return object
	case slices.Equal(kinds, []string{"array"}):
		return []any{}
	}
	return whole
}

// nullable reports whether a schema says that its value may be null.
func nullable(schema map[string]any) bool {
	if all, ok := schema["type"].([]any); ok && slices.Contains(all, any("null")) {
		values, enumerated := schema["enum"].([]any)
		_, constant := schema["const"]
		return !constant && (!enumerated || slices.Contains(values, nil))
	}
	return false
}
