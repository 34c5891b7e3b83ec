package recipientpages

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people/pages"
)

// fieldOf returns the field name for a param.
func fieldOf(rule, param string) string { return "p-" + rule + "-" + param }

// ruleChoices returns the rules of a topic with a field for each param, filled in with the submitted values.
func ruleChoices(rules []catalog.Rule, sent url.Values) []pages.RuleChoice {
	var list []pages.RuleChoice
	for i := range rules {
		r := &rules[i]
		one := pages.RuleChoice{Name: r.Name, Title: r.Title, About: r.Description, Labelled: r.Title != "" || r.Description != "", Checked: sent.Get("rule") == r.Name || i == 0 && sent.Get("rule") == ""}
		if one.Title == "" {
			one.Title = pages.OfName(r.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Params)) {
			p := pages.Param{ID: fieldOf(r.Name, name), Title: pages.OfName(name), Kind: r.Params[name], Value: sent.Get(fieldOf(r.Name, name))}
			if len(rules) > 1 {
				p.Of = one.Title
			}
			one.Params = append(one.Params, p)
		}
		list = append(list, one)
	}
	return list
}

// paramsOf reads the params of the chosen rule, by default the first. The fault describes the
// invalid field and what to enter; it is empty if all fields are valid.
func paramsOf(site *pages.Site, locale string, rules []catalog.Rule, chosen *string, sent url.Values) (params json.RawMessage, fault pages.Text) {
	if len(rules) == 0 {
		*chosen = ""
		return nil, fault
	}
	if *chosen == "" {
		*chosen = rules[0].Name
	}
	i := slices.IndexFunc(rules, func(r catalog.Rule) bool { return r.Name == *chosen })
	if i < 0 {
		return nil, fieldFault(site, locale, &fanfare.Error{Pointer: "/rule"})
	}
	if len(rules[i].Params) == 0 {
		return nil, fault
	}
	values := map[string]any{}
	for name, kind := range rules[i].Params {
		text := strings.TrimSpace(sent.Get(fieldOf(*chosen, name)))
		switch kind {
		case "number":
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
				return nil, pages.Say("entry_number", pages.OfName(name))
			}
			values[name] = n
		case "boolean":
			values[name] = text == "true"
		case "strings":
			list := []string{}
			for one := range strings.SplitSeq(text, ",") {
				if one = strings.TrimSpace(one); one != "" {
					list = append(list, one)
				}
			}
			values[name] = list
		default:
			if text == "" {
				return nil, pages.Say("entry_missing", pages.OfName(name))
			}
			values[name] = text
		}
	}
	params, err := json.Marshal(values)
	if err != nil {
		fault = pages.Say("entries_wrong")
	}
	return params, fault
}

// fieldFault returns the text about an invalid field of a form. It uses the label on the
// page and never quotes the error, which is meant for users of the API.
func fieldFault(site *pages.Site, locale string, err error) pages.Text {
	label := map[string]string{"/channel": "channel", "/cadence": "cadence", "/locale": "locale", "/time_zone": "zone", "/rule": "which", "/params": "which", "/filter": "which"}[pointerOf(err)]
	param, isParam := strings.CutPrefix(pointerOf(err), "/params/")
	switch {
	case pointerOf(err) == "/to", pointerOf(err) == "/address":
		return pages.Say("address_wrong")
	case isParam:
		return pages.Say("entry_wrong", pages.OfName(param))
	case label != "" && site != nil:
		return pages.Say("entry_wrong", site.Texts.Say(locale, label))
	}
	return pages.Say("entries_wrong")
}

// pointerOf returns the pointer of an error, or "".
func pointerOf(err error) string {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		return e.Pointer
	}
	return ""
}

// chosenLocale returns the language chosen in the form or, by default, that of the browser.
func chosenLocale(r *http.Request, sent url.Values) string {
	if sent.Get("locale") != "" {
		return sent.Get("locale")
	}
	return localeOf(r)
}

// offered returns the languages to choose from, including the wanted one, and the chosen
// language. Languages are compared without regard to case.
func offered(locales []string, wanted string) (list []string, chosen string) {
	if i := slices.IndexFunc(locales, func(tag string) bool { return strings.EqualFold(tag, wanted) }); i >= 0 {
		return locales, locales[i]
	}
	if !pages.IsLanguage(wanted) {
		return locales, "en"
	}
	return append([]string{wanted}, locales...), wanted
}

func channelNames(channels []pages.Channel) []string {
	names := make([]string, len(channels))
	for i, c := range channels {
		names[i] = c.Name
	}
	return names
}
