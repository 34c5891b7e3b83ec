package selfservice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/pages"
	"fanfare.dev/fanfare/internal/people/pages/words"
	"fanfare.dev/fanfare/internal/people/registry"
)

// choiceOf describes a subscription to whom it belongs. It shows no condition and no id
// but that of the field.
func choiceOf(r *registry.Registry, s *people.Subscription, locale string) pages.Choice {
	one := pages.Choice{ID: fanfare.SubscriptionID(s.Place), Title: titleOf(r, s), Detail: detailOf(r, s, locale), Paused: s.State == "paused"}
	if one.About = s.Description; one.About == "" {
		if rule := ruleOf(r, s); rule != nil {
			one.About = rule.Description
		}
	}
	return one
}

// ruleOf is the rule that a subscription names, nil without one.
func ruleOf(r *registry.Registry, s *people.Subscription) *catalog.Rule {
	t := r.Configuration().Topic(s.Service, s.Topic)
	if t == nil || s.Rule == "" {
		return nil
	}
	return t.Rule(s.Rule)
}

// titleOf is the title of the subscription, or else of its rule or its topic.
func titleOf(r *registry.Registry, s *people.Subscription) string {
	var of catalog.Labels
	if t := r.Configuration().Topic(s.Service, s.Topic); t != nil {
		of = t.LabelsOf(ruleOf(r, s))
	}
	return cmp.Or(s.Title, of.Title, words.OfName(s.Topic))
}

// detailOf lists the values that the rule asks for, each by the name of the param in
// words. There are none of a filter: they are a part of its condition.
func detailOf(r *registry.Registry, s *people.Subscription, locale string) string {
	rule := ruleOf(r, s)
	if rule == nil || len(s.Params) == 0 {
		return ""
	}
	values := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(s.Params))
	d.UseNumber()
	if d.Decode(&values) != nil {
		return ""
	}
	texts := siteOf(r, s.Service).Texts
	say := func(name string) string { return texts.Say(locale, name) }
	var all []string
	for _, name := range slices.Sorted(maps.Keys(rule.Params)) {
		if text := valueText(values[name], say); text != "" {
			all = append(all, words.OfName(name)+": "+text)
		}
	}
	return strings.Join(all, "; ")
}

// valueText writes the value of a param for people, "" where there is nothing to write.
func valueText(v any, say func(name string) string) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		if v {
			return say("yes")
		}
		return say("no")
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), "eE") {
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
		return v.String()
	case []any:
		var all []string
		for _, one := range v {
			if text := valueText(one, say); text != "" {
				all = append(all, text)
			}
		}
		return strings.Join(all, ", ")
	}
	return ""
}

// channelsFor are channels as recipients choose them.
func channelsFor(r *registry.Registry, service string, takes func(*catalog.Channel) bool) []pages.Channel {
	var list []pages.Channel
	for _, c := range r.Configuration().Channels(service) {
		if takes(c) {
			list = append(list, pages.Channel{Name: c.Name, Title: c.Title, Driver: c.Driver})
		}
	}
	return list
}

// distinct sorts a list and drops what it repeats.
func distinct(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
