package preview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/render/lint"
	"fanfare.dev/fanfare/internal/render/mime"
)

// Lint lints one template.
func (p Previewer) Lint(ctx context.Context, service, name string, in wire.LintRequest) (wire.Lint, error) {
	m := &request{Previewer: p, service: service, in: wire.PreviewRequest{Template: in.Template, Draft: in.Draft, Version: in.Version, Topic: in.Topic}}
	source, label, err := m.source(name)
	if err != nil {
		return wire.Lint{}, err
	}
	if err := m.find(ctx, name); err != nil {
		return wire.Lint{}, err
	}
	found, more, err := lintSource(source, m.schema(), p.MaxBytes)
	if err != nil {
		return wire.Lint{}, err
	}
	if template, err := render.Compile(source); err == nil {
		found = append(renderFindings(m.check(template)), found...)
	}
	out := wire.Lint{Template: label, Findings: make([]wire.Finding, len(found)), More: more}
	for i, f := range found {
		out.Findings[i] = wire.Finding(f)
	}
	return out, nil
}

// renderFindings returns the findings of an error that makes an apply refuse a template.
func renderFindings(err error) (found []lint.Finding) {
	wrong, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return nil
	}
	for _, one := range append([]*fanfare.Error{wrong}, wrong.Details...) {
		found = append(found, lint.Finding{Rule: lint.RenderFails, Pointer: one.Pointer, Line: max(one.Line, 1), Column: max(one.Column, 1), Message: one.Message, Hint: one.Hint})
	}
	return found[:min(len(found), lint.MaxFindings)]
}

// lintSource lints a template and its output with sample data.
func lintSource(source render.Source, schema json.RawMessage, most int) (found []lint.Finding, more int, err error) {
	template, err := render.Compile(source)
	if err == nil {
		err = template.CheckFiles(most)
	}
	if err != nil {
		return nil, 0, err
	}
	var shown lint.Rendered
	if _, text, html, err := template.DryRun(schema); err == nil { // a draft may be for a topic that is not in the request
		shown = lint.Rendered{Text: text, HTML: html}
	}
	found, more = lint.Check(lint.Source{Name: source.Name, Subject: source.Subject, Text: source.Text, HTML: source.HTML, Markdown: source.Markdown,
		Layout: source.Layout, Lang: source.Lang, CustomLayout: source.Page, Partials: source.Partials, Rendered: shown,
		UnusedImages: template.UnusedImages(), FilesBytes: mime.EncodedSize(source.Files)})
	for _, v := range source.Variants { // each variant separately
		of, further := lint.Check(lint.Source{Name: source.Name, PathPrefix: v.PathPrefix(), Subject: v.Subject, Text: v.Text, HTML: v.HTML, Markdown: v.Markdown,
			Layout: cmp.Or(source.Layout, source.Page), Lang: v.Locale, Partials: partialsOf(source, v)})
		found, more = append(found, of...), more+further
	}
	if over := len(found) - lint.MaxFindings; over > 0 {
		found, more = found[:lint.MaxFindings], more+over
	}
	return found, more, nil
}

// partialsOf returns the partials of a Markdown variant. The partials of HTML are linted once, with the template.
func partialsOf(source render.Source, v render.Variant) map[string]string {
	if v.Markdown == "" {
		return nil
	}
	return source.Partials
}

// LintNotes lints the templates in a document that can be applied.
func LintNotes(doc *document.Document) (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(doc.Templates)) {
		if spec := doc.Templates[name]; !spec.Delete {
			notes = append(notes, lintNotes(name, spec, schemaFor(doc, name))...)
		}
	}
	return notes
}

// schemaFor returns the schema of the first topic of a document that uses a template, or nil.
func schemaFor(doc *document.Document, template string) json.RawMessage {
	for _, name := range slices.Sorted(maps.Keys(doc.Topics)) {
		topic := doc.Topics[name]
		if topic.Template == template || topic.Digest.Template == template || slices.ContainsFunc(topic.Rules, func(r document.RuleSpec) bool { return r.Template == template }) {
			return topic.Schema
		}
	}
	return nil
}

// lintNotes lints one template and returns the findings as text.
func lintNotes(name string, spec *document.TemplateSpec, schema json.RawMessage) (notes []string) {
	found, more, err := lintSource(compose.SourceOfParts(name, spec.TemplateParts), schema, math.MaxInt) // the plan reports files that are too large
	if err != nil {                                                                                      // the plan reports the error
		return nil
	}
	for _, f := range found {
		part := strings.TrimPrefix(f.Pointer, "/templates/")
		notes = append(notes, fmt.Sprintf("%s, line %d, column %d: %s: %s (%s)", part, f.Line, f.Column, f.Rule, f.Message, f.Hint))
	}
	if more > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d further findings", name, more))
	}
	return notes
}
