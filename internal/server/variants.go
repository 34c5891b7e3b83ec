package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
)

// variantsOf are what a template says to some, in one list.
func variantsOf(v registry.TemplateVariants) (list []render.Variant) {
	add := func(locale, device string, w registry.TemplateWords) {
		list = append(list, render.Variant{Locale: locale, Device: device, Subject: w.Subject, Text: w.Text, HTML: w.HTML, JSON: w.JSON, Markdown: w.Markdown, Files: w.Files()})
	}
	for _, device := range slices.Sorted(maps.Keys(v.Devices)) {
		add("", device, v.Devices[device])
	}
	for _, tag := range slices.Sorted(maps.Keys(v.Locales)) {
		one := v.Locales[tag]
		if !one.IsZero() {
			add(tag, "", one.TemplateWords)
		}
		for _, device := range slices.Sorted(maps.Keys(one.Devices)) {
			add(tag, device, one.Devices[device])
		}
	}
	return list
}

// partsOf are the parts of a template as a request has them.
func partsOf(sent *wire.TemplateDraft) (parts registry.TemplateParts, err error) {
	text, err := json.Marshal(sent.TemplateParts)
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	return parts, err
}

// speakTo has the message written as the request wants it read.
func (m *previewed) speakTo() error {
	if _, err := time.LoadLocation(m.in.TimeZone); err != nil {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/time_zone", Message: fmt.Sprintf("unknown time zone %q", m.in.TimeZone), Hint: "write it as Europe/London"}
	}
	m.recipient.Locale = cmp.Or(m.in.Locale, m.recipient.Locale)
	m.recipient.TimeZone = cmp.Or(m.in.TimeZone, m.recipient.TimeZone)
	if m.in.Device == "" {
		return nil
	}
	var err error
	m.recipient.Data, err = json.Marshal(map[string]string{"device": m.in.Device}) // what is said of the recipient comes first
	return err
}
