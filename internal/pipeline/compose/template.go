package compose

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/render"
)

// ContentName is the template name in errors about the content of a message that was sent
// without a template.
const ContentName = "content"

// Templates holds the template versions that were compiled since the start. A version
// never changes, so an entry never expires. It is safe for concurrent use.
type Templates struct {
	registry *registry.Registry
	compiled sync.Map // uint32, the number of the version: *render.Template
}

// NewTemplates returns an empty set that compiles the versions of a registry.
func NewTemplates(r *registry.Registry) *Templates { return &Templates{registry: r} }

// Of returns the template of an event's messages: a compiled version, or the content that
// the event carries.
func (t *Templates) Of(posted *fanfare.AcceptedEvent, number uint32) (*render.Template, error) {
	if c := posted.Content; c != nil {
		return render.Compile(render.Source{Name: ContentName, Subject: c.Subject, Text: c.Text, HTML: c.HTML, AsIs: c.AsIs})
	}
	if number != 0 || posted.Direct == nil || posted.Direct.Content == nil {
		return t.version(number)
	}
	c, sms := posted.Direct.Content, false
	if channel, ok := t.registry.Channel(posted.Direct.Channel); ok {
		sms = channel.SendsTexts()
	}
	return render.Compile(render.Source{Name: ContentName, SMS: sms, Subject: c.Subject, Text: c.Text, HTML: c.HTML, JSON: c.JSON, Files: fanfare.Shown(posted.Direct.Files)})
}

func (t *Templates) version(number uint32) (*render.Template, error) {
	if known, ok := t.compiled.Load(number); ok {
		return known.(*render.Template), nil
	}
	row, ok := t.registry.Template(number)
	if !ok {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("template version %d does not exist", number), Hint: "set a template in the topic or the rule, and apply the change"}
	}
	template, err := render.Compile(Source(&row))
	if err == nil {
		t.compiled.Store(number, template)
	}
	return template, err
}

// Source converts a stored template version for the compiler.
func Source(row *catalog.TemplateSource) render.Source {
	s := SourceOfParts(row.Name, row.TemplateParts)
	s.Version = row.Version
	return s
}

// SourceOfParts converts the parts of a template for the compiler.
func SourceOfParts(name string, p catalog.TemplateParts) render.Source {
	if p.Formatter != "" && p.Subject+p.Text+p.HTML+p.Markdown+p.JSON == "" {
		p.Subject, p.Text, p.HTML = "{{ formatted.subject }}", "{{ formatted.text }}", "{{ formatted.html | raw }}"
	}
	return render.Source{
		Name: name, SMS: p.Type == catalog.TemplateSMS, Subject: p.Subject, Text: p.Text, HTML: p.HTML, JSON: p.JSON, Markdown: p.Markdown, Layout: p.Layout,
		Lang: p.Lang, Page: p.Page, Partials: p.Partials, Syntax: p.Syntax, Files: p.Files(), Variants: variants(p.TemplateVariants),
	}
}

// variants lists the variants of a template for languages and devices, in a fixed order.
func variants(v catalog.TemplateVariants) (list []render.Variant) {
	add := func(locale, device string, w catalog.TemplateWords) {
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
