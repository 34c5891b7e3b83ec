package server

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
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/render/lint"
	"fanfare.dev/fanfare/internal/render/mime"
)

// Lint looks at one template.
func (p previews) Lint(ctx context.Context, service, name string, in wire.LintRequest) (wire.Lint, error) {
	m := &previewed{previews: p, service: service, in: wire.PreviewRequest{Template: in.Template, Draft: in.Draft, Version: in.Version, Topic: in.Topic}}
	source, label, err := m.source(name)
	if err != nil {
		return wire.Lint{}, err
	}
	if err := m.find(ctx, name); err != nil {
		return wire.Lint{}, err
	}
	found, more, err := lintSource(source, m.schema(), p.most)
	if err != nil {
		return wire.Lint{}, err
	}
	if template, err := render.Compile(source); err == nil {
		found = append(rendersNot(m.try(template)), found...)
	}
	out := wire.Lint{Template: label, Findings: make([]wire.Finding, len(found)), More: more}
	for i, f := range found {
		out.Findings[i] = wire.Finding(f)
	}
	return out, nil
}

// rendersNot are the findings of an error for which an apply refuses a template.
func rendersNot(err error) (found []lint.Finding) {
	wrong, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return nil
	}
	for _, one := range append([]*fanfare.Error{wrong}, wrong.Details...) {
		found = append(found, lint.Finding{Rule: lint.RenderFails, Pointer: one.Pointer, Line: max(one.Line, 1), Column: max(one.Column, 1), Message: one.Message, Hint: one.Hint})
	}
	return found[:min(len(found), lint.MaxFindings)]
}

// lintSource looks at a template and at what it says with sample data.
func lintSource(source render.Source, schema json.RawMessage, most int) (found []lint.Finding, more int, err error) {
	template, err := render.Compile(source)
	if err == nil {
		err = template.CheckFiles(most)
	}
	if err != nil {
		return nil, 0, err
	}
	var shown lint.Shown
	if _, text, html, err := template.DryRun(schema); err == nil { // a draft may be for a topic that nobody named
		shown = lint.Shown{Text: text, HTML: html}
	}
	found, more = lint.Check(lint.Source{Name: source.Name, Subject: source.Subject, Text: source.Text, HTML: source.HTML, Markdown: source.Markdown,
		Layout: source.Layout, Lang: source.Lang, Page: source.Page, Partials: source.Partials, Shown: shown,
		Unshown: template.Unshown(), FilesBytes: mime.EncodedSize(source.Files)})
	for _, v := range source.Variants { // each by itself: what it lacks is looked at where it stands
		of, further := lint.Check(lint.Source{Name: source.Name, Within: v.Within(), Subject: v.Subject, Text: v.Text, HTML: v.HTML, Markdown: v.Markdown,
			Layout: cmp.Or(source.Layout, source.Page), Lang: v.Locale, Partials: partialsOf(source, v)})
		found, more = append(found, of...), more+further
	}
	if over := len(found) - lint.MaxFindings; over > 0 {
		found, more = found[:lint.MaxFindings], more+over
	}
	return found, more, nil
}

// partialsOf are those that the Markdown of a variant is made with; in HTML they are
// looked at once, with the template.
func partialsOf(source render.Source, v render.Variant) map[string]string {
	if v.Markdown == "" {
		return nil
	}
	return source.Partials
}

// Plan notes beside what would change what readers are going to mind of the
// templates in the document, which are all good.
func (d documents) Plan(ctx context.Context, doc *registry.Document) (registry.Diff, error) {
	diff, err := d.Registry.Plan(ctx, doc)
	if err != nil {
		return diff, err
	}
	diff.Notes = append(diff.Notes, findings(doc)...)
	return diff, nil
}

// findings are what readers are going to mind of the templates in a document that
// can be applied.
func findings(doc *registry.Document) (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(doc.Templates)) {
		if spec := doc.Templates[name]; !spec.Delete {
			notes = append(notes, lintNotes(name, spec, schemaFor(doc, name))...)
		}
	}
	return notes
}

// schemaFor is the schema of the first topic of a document that uses a template, or
// nil.
func schemaFor(doc *registry.Document, template string) json.RawMessage {
	for _, name := range slices.Sorted(maps.Keys(doc.Topics)) {
		topic := doc.Topics[name]
		if topic.Template == template || topic.Digest.Template == template || slices.ContainsFunc(topic.Rules, func(r registry.RuleSpec) bool { return r.Template == template }) {
			return topic.Schema
		}
	}
	return nil
}

// lintNotes are what is found, as people read it.
func lintNotes(name string, spec *registry.TemplateSpec, schema json.RawMessage) (notes []string) {
	found, more, err := lintSource(compose.SourceOfParts(name, spec.TemplateParts), schema, math.MaxInt) // what is too large was said
	if err != nil {                                                                                      // the plan would have said so
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
