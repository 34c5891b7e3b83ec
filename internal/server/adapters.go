package server

import (
	"context"
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/captured"
	"fanfare.dev/fanfare/internal/admin/preview"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/match"
	"fanfare.dev/fanfare/internal/session/broker"
	"fanfare.dev/fanfare/internal/session/fleet"
)

// previews adds the HTML of a preview, as that of a captured message.
type previews struct{ preview.Previewer }

// HTML renders the HTML of a template, without scripts and with its images as data.
func (p previews) HTML(ctx context.Context, service, template string, in wire.PreviewRequest) ([]byte, error) {
	shown, err := p.Preview(ctx, service, template, in)
	if err != nil {
		return nil, err
	}
	page := captured.HTMLOf([]byte(shown.Raw))
	if page == nil {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "the template has no HTML", Hint: "show its text: POST /v1/templates/{template}/preview"}
	}
	return page, nil
}

// topics is the registry with the methods that intake needs.
type topics struct {
	*registry.Registry
	audiences *match.Audiences
}

// CheckAudience rejects an audience filter that does not compile.
func (t topics) CheckAudience(service, filter string) error {
	return t.audiences.Check(service, filter)
}

// Intake finds the topic of an event.
func (t topics) Intake(service, topic string) (fanfare.Lane, func(json.RawMessage) error, error) {
	found, ok := t.Topic(service, topic)
	if !ok {
		return 0, nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("service %q has no topic %q", service, topic), Hint: "apply a document that declares the topic"}
	}
	return found.Lane, found.ValidateData, nil
}

// documents applies documents and then activates changed channels and workers.
type documents struct {
	*registry.Registry
	channels *channels.Channels
	sessions *broker.Broker
	fleet    *fleet.Hub
}

// changed activates changed channels and workers.
func (d documents) changed(ctx context.Context) error {
	d.sessions.DefinitionsChanged()
	d.fleet.Changed()
	return d.channels.Reconcile(context.WithoutCancel(ctx))
}

// Plan returns what an apply would change, with lint notes about the templates.
func (d documents) Plan(ctx context.Context, doc *document.Document) (catalog.Diff, error) {
	diff, err := d.Registry.Plan(ctx, doc)
	if err != nil {
		return diff, err
	}
	diff.Notes = append(diff.Notes, preview.LintNotes(doc)...)
	return diff, nil
}

// Apply applies a document and adds lint notes about its templates.
func (d documents) Apply(ctx context.Context, doc *document.Document) (catalog.Diff, error) {
	diff, err := d.Registry.Apply(ctx, doc)
	if err != nil {
		return diff, err
	}
	diff.Notes = append(diff.Notes, preview.LintNotes(doc)...)
	return diff, d.changed(ctx)
}

// ApplyMember applies one member.
func (d documents) ApplyMember(ctx context.Context, doc *document.Document, check func(catalog.Configuration) error) (catalog.Configuration, error) {
	c, err := d.Registry.ApplyMember(ctx, doc, check)
	if err != nil {
		return c, err
	}
	return c, d.changed(ctx)
}

// DeleteMember deletes one member.
func (d documents) DeleteMember(ctx context.Context, m document.Member, check func(catalog.Configuration) error) error {
	if err := d.Registry.DeleteMember(ctx, m, check); err != nil {
		return err
	}
	return d.changed(ctx)
}
