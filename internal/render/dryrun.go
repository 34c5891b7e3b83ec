package render

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/jsonschema"
	"fanfare.dev/fanfare/internal/render/liquid"
	"fanfare.dev/fanfare/internal/render/mime"
)

// DryRun renders the template with sample data: each field of the schema has a value that fits
// it (its first example, default or enumerated value if it has one), and other variables have
// stand-ins. schema may be empty. Then it renders the template for every case of recipients and
// events that may lack something. The error is a *fanfare.Error with pointer and line.
func (t *Template) DryRun(schema json.RawMessage) (subject, text, html string, err error) {
	root, err := jsonschema.Parse(schema)
	if err != nil {
		return "", "", "", err
	}
	vars, err := t.findSample(root)
	if err != nil {
		return "", "", "", err
	}
	rendered, err := t.renderAll(vars, nil)
	if err == nil {
		err = t.tryCases(vars, root)
	}
	return rendered[0], rendered[1], rendered[2], err
}

// DryRunDigest is DryRun for a template of digests; schemas are those of the topics.
func (t *Template) DryRunDigest(schemas []json.RawMessage) error {
	if len(schemas) == 0 {
		schemas = []json.RawMessage{nil}
	}
	for _, schema := range schemas {
		root, err := jsonschema.Parse(schema)
		if err != nil {
			return err
		}
		// A field of one topic may be missing in another: all fields are known only with one
		// schema.
		vars, err := t.findSampleOf(root, jsonschema.Describes(root) && len(schemas) == 1)
		if err == nil {
			err = t.tryCases(vars, root)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findSample returns variables with which the template renders. Only the names of params, data
// and attributes are known, so several stand-ins are tried for their values.
func (t *Template) findSample(root any) (vars map[string]any, err error) {
	return t.findSampleOf(root, jsonschema.Describes(root))
}

// findSampleOf is findSample; known tells that the sample has all fields that can exist.
func (t *Template) findSampleOf(root any, known bool) (vars map[string]any, err error) {
	for _, standIn := range []any{1, "sample", "2026-01-31T12:00:00Z", []any{"sample"}} {
		vars = t.sampleVariables(root, standIn)
		if err = t.renderVariants(vars, &liquid.MissingVariables{Uncertain: t.uncertain, Opaque: t.opaque, Sample: known}); err == nil {
			return vars, nil
		}
	}
	return nil, explainDate(err)
}

// explainDate tells how to declare a date, if a sample failed because it was not one.
func explainDate(err error) error {
	wrong, ok := errors.AsType[*fanfare.Error](err)
	if !ok || !strings.Contains(wrong.Message, liquid.NotADate(jsonschema.SampleText)) {
		return err
	}
	told := *wrong
	filter, _, _ := strings.Cut(wrong.Message, ": ")
	told.Message = filter + " needs a date, but the schema does not declare the field as a date"
	told.Hint = "add format: date-time or format: date to the field in the schema of the topic"
	return &told
}

// sampleVariables returns variables that have everything that the template reads.
func (t *Template) sampleVariables(root, standIn any) map[string]any {
	subscription := map[string]any{"id": "sub-1", "rule": "sample", "title": "sample", "description": "sample", "params": map[string]any{}, "data": map[string]any{}}
	vars := map[string]any{
		"event": jsonschema.ConvertIntegers(jsonschema.Sample(root, root, 0)),
		"meta": map[string]any{
			"id": "sample", "source": "/sample", "type": "sample", "subject": "sample",
			"time": "2026-01-31T12:00:00Z", "topic": "sample", "service": "sample",
		},
		"subscriber": map[string]any{
			"id": "sample", "address": "sample@example.org", "locale": "en", "time_zone": "UTC",
			"attributes": map[string]any{},
		},
		"sub":             map[string]any{},
		"formatted":       map[string]any{"subject": "sample", "text": "sample", "html": "sample"},
		"subscription":    subscription,
		"subscriptions":   []any{subscription},
		"unsubscribe_url": "https://example.org/u/sample",
		"preferences_url": "https://example.org/p/sample",
	}
	vars[liquid.LocalizationVariable] = &t.localizationFor("", "").Localization
	if t.Digest() {
		vars["digest"] = map[string]any{"due": "2026-01-31T08:00:00Z", "cadence": "daily 08:00", "time_zone": "UTC", "service": "sample"}
		vars["items"] = []any{map[string]any{"event": vars["event"], "meta": vars["meta"], "subscription": subscription, "subscriptions": []any{subscription}}}
		vars["count"], vars["more"] = 2, 1
		delete(vars, "event")
		delete(vars, "meta")
	}
	own := liquid.NewFields(map[string]any{}, liquid.PlainNames(vars["event"]), "https://example.org/u/sample")
	vars[liquid.FieldsVariable] = own
	for _, part := range t.allParts() {
		for _, p := range part.Paths {
			if p.Root == liquid.FieldsVariable && len(p.Steps) > 0 {
				own.AddStandIn(p.Steps[0].Name, standIn)
				continue
			}
			if p.Root != "" {
				vars[p.Root] = jsonschema.Ensure(vars[p.Root], p.Steps, standIn)
			}
		}
	}
	vars["subscription"] = vars["subscriptions"].([]any)[0]
	return vars
}

// renderVariants renders the template and its variants.
func (t *Template) renderVariants(vars map[string]any, absent *liquid.MissingVariables) error {
	for _, one := range t.withVariants() {
		if _, err := one.renderAll(one.withLocalization(vars), absent); err != nil {
			return err
		}
	}
	return nil
}

// renderAll renders the subject, the text, the HTML and the JSON.
func (t *Template) renderAll(vars map[string]any, absent *liquid.MissingVariables) (rendered [4]string, err error) {
	for i, part := range []*templatePart{t.subject, t.text, t.html, t.json} {
		if part == nil {
			continue
		}
		out, wrong := part.Whole.Render(vars, &liquid.Usage{Missing: absent})
		if wrong != nil {
			return rendered, t.setRenderedPosition(part, wrong)
		}
		if part == t.json && !json.Valid(out) {
			return rendered, t.setRenderedPosition(part, notJSON())
		}
		rendered[i] = string(out)
	}
	rendered[0] = string(mime.CleanSubject([]byte(rendered[0])))
	return rendered, nil
}

// A dryRunCase is a kind of recipient or of event that can occur. It removes from the sample,
// which has everything, what this kind lacks.
type dryRunCase struct {
	name  string // for errors
	apply func(vars map[string]any)
}

// recipientCases lists the cases of recipients; direct tells that the template may be used in
// direct sends. No case changes an object that it shares with another.
func (t *Template) recipientCases(direct bool) []dryRunCase {
	ofFilter := map[string]any{"id": "sub-2", "rule": "", "title": "", "description": ""}
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
	all := []dryRunCase{
		{"a subscription with a filter and without rule, params and data", func(vars map[string]any) { subscribed(vars, ofFilter) }},
		{"several subscriptions, the last with a filter", func(vars map[string]any) { subscribed(vars, vars["subscription"], ofFilter) }},
		{"several subscriptions, the first with a filter", func(vars map[string]any) { subscribed(vars, ofFilter, vars["subscription"]) }},
		{"a recipient without attributes", func(vars map[string]any) { without(vars, "attributes") }},
		{"a recipient without locale and time zone", func(vars map[string]any) { without(vars, "locale", "time_zone") }},
		{"a server without links", func(vars map[string]any) { vars["unsubscribe_url"], vars["preferences_url"] = "", "" }},
		{"a subscription with a filter, of a recipient without attributes, locale and time zone", func(vars map[string]any) {
			subscribed(vars, ofFilter)
			without(vars, "attributes", "locale", "time_zone")
		}},
	}
	if direct && !t.Digest() {
		all = append(all, dryRunCase{"a direct message to a recipient without a subscription", func(vars map[string]any) {
			delete(vars, "subscription")
			vars["subscriptions"] = []any{}
		}})
	}
	if t.Digest() {
		all = append(all, dryRunCase{"a digest of one event", func(vars map[string]any) { digest(vars, 1, 0) }},
			dryRunCase{"a digest of many events, some of them omitted", func(vars map[string]any) { digest(vars, 3, 2) }},
			dryRunCase{"a digest of many events, none of them omitted", func(vars map[string]any) { digest(vars, 3, 0) }})
	}
	return all
}

// tryCases renders the template for every case of recipients, each also with an event that has
// only what the schema requires. vars is the sample.
func (t *Template) tryCases(vars map[string]any, root any) error {
	least := vars["event"]
	if root != nil {
		least = jsonschema.ConvertIntegers(jsonschema.LeastSample(root, root, vars["event"], 0))
	}
	events := []dryRunCase{{"", func(map[string]any) {}}, {"an event with only the fields that the schema requires", func(vars map[string]any) {
		vars[liquid.FieldsVariable] = liquid.NewFields(map[string]any{}, liquid.PlainNames(least), "https://example.org/u/sample")
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
	if root == nil { // without a schema nothing is known to be optional
		events = events[:1]
	}
	none := dryRunCase{"", func(map[string]any) {}}
	for _, event := range events {
		for _, of := range append([]dryRunCase{none}, t.recipientCases(root == nil)...) {
			own := maps.Clone(vars)
			if items, ok := own["items"].([]any); ok {
				own["items"] = slices.Clone(items)
			}
			of.apply(own)
			event.apply(own)
			if err := t.renderVariants(own, nil); err != nil {
				return withCases(err, of.name, event.name)
			}
		}
	}
	return nil
}

// withCases adds the case in which a template fails to the error.
func withCases(err error, names ...string) error {
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
