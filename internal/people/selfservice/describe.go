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

// choiceOf describes a subscription to its subscriber. It shows no condition, and no id
// except that of the field.
func choiceOf(r *registry.Registry, s *people.Subscription, locale string) pages.Choice {
	one := pages.Choice{ID: fanfare.SubscriptionID(s.Place), Title: titleOf(r, s), Detail: detailOf(r, s, locale), Paused: s.State == "paused"}
	if one.About = s.Description; one.About == "" {
		if rule := ruleOf(r, s); rule != nil {
			one.About = rule.Description
		}
	}
	return one
}

// ruleOf returns the rule of a subscription, or nil.
func ruleOf(r *registry.Registry, s *people.Subscription) *catalog.Rule {
	t := r.Configuration().Topic(s.Service, s.Topic)
	if t == nil || s.Rule == "" {
		return nil
	}
	return t.Rule(s.Rule)
}

// titleOf returns the title of the subscription or, by default, of its rule or its topic.
func titleOf(r *registry.Registry, s *people.Subscription) string {
	var of catalog.Labels
	if t := r.Configuration().Topic(s.Service, s.Topic); t != nil {
		of = t.LabelsOf(ruleOf(r, s))
	}
	return cmp.Or(s.Title, of.Title, words.OfName(s.Topic))
}

// detailOf lists the values of the params of a rule, with the names of the params as
// words. A filter has no params: its values are part of the condition.
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
	texts := SiteOf(r, s.Service).Texts
	say := func(name string) string { return texts.Say(locale, name) }
	var all []string
	for _, name := range slices.Sorted(maps.Keys(rule.Params)) {
		if text := valueText(values[name], say); text != "" {
			all = append(all, words.OfName(name)+": "+text)
		}
	}
	return strings.Join(all, "; ")
}

// valueText returns the value of a param as text for people, or "" if there is none.
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

// channelsFor returns channels in the form in which recipients choose them.
func channelsFor(r *registry.Registry, service string, takes func(*catalog.Channel) bool) []pages.Channel {
	var list []pages.Channel
	for _, c := range r.Configuration().Channels(service) {
		if takes(c) {
			list = append(list, pages.Channel{Name: c.Name, Title: c.Title, Kind: kindOf(c)})
		}
	}
	return list
}

// kindOf returns the kind under which pages show a channel.
func kindOf(c *catalog.Channel) string {
	switch {
	case c.SendsTexts():
		return "sms"
	case c.SendsDocuments():
		return "webhook"
	case c.Driver == "inbox":
		return "inbox"
	}
	return "mail"
}

// distinct sorts a list and removes duplicates.
func distinct(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
