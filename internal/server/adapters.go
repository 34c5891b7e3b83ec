package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/preview"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/match"
)

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

// documents applies documents and then activates changed channels.
type documents struct {
	*registry.Registry
	channels *channels.Channels
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
	return diff, d.channels.Reconcile(context.WithoutCancel(ctx))
}

// ApplyMember applies one member.
func (d documents) ApplyMember(ctx context.Context, doc *document.Document, check func(catalog.Configuration) error) (catalog.Configuration, error) {
	c, err := d.Registry.ApplyMember(ctx, doc, check)
	if err != nil {
		return c, err
	}
	return c, d.channels.Reconcile(context.WithoutCancel(ctx))
}

// DeleteMember deletes one member.
func (d documents) DeleteMember(ctx context.Context, m document.Member, check func(catalog.Configuration) error) error {
	if err := d.Registry.DeleteMember(ctx, m, check); err != nil {
		return err
	}
	return d.channels.Reconcile(context.WithoutCancel(ctx))
}

// subscriptions rejects new subscriptions below the disk floor.
type subscriptions struct {
	*registry.Registry
	floor *datadir.DiskFloor
}

// PutSubscriptions stores subscriptions.
func (s subscriptions) PutSubscriptions(ctx context.Context, service string, puts []people.SubscriptionPut, results []people.PutResult) error {
	if err := s.floor.Check(); err != nil {
		return err
	}
	return s.Registry.PutSubscriptions(ctx, service, puts, results)
}

// Import begins an import.
func (s subscriptions) Import(service string) httpapi.Import {
	return &importing{Import: s.Registry.Import(service), floor: s.floor}
}

type importing struct {
	*registry.Import
	floor *datadir.DiskFloor
	full  error // error of a step; later steps fail with it
}

// Begin stores the next subscriptions of the import.
func (i *importing) Begin(ctx context.Context, puts []people.SubscriptionPut, results []people.PutResult) <-chan error {
	if i.full == nil {
		i.full = i.floor.Check()
	}
	if i.full != nil {
		over := make(chan error, 1)
		over <- i.full
		return over
	}
	return i.Import.Begin(ctx, puts, results)
}

// isOperatorKey reports whether a key is one of an operator that does not expire.
func isOperatorKey(k state.Key) bool { return k.Service == "" && !k.Disabled && k.ExpiresAt.IsZero() }

// adminKey creates an admin key at the first start, and after its file was removed. The file is complete once it exists.
func adminKey(ctx context.Context, dir string, people *registry.Registry) error {
	path := filepath.Join(dir, datadir.AdminKey)
	if secret, err := os.ReadFile(path); err == nil {
		if who, known := people.Authenticate(datadir.TrimLine(secret)); known && who.Operator() {
			return nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("admin key: %w", err)
	}
	_, secret, err := people.CreateKey(ctx, "", state.KeySettings{Name: "admin of the first start"})
	if err != nil {
		return fmt.Errorf("admin key: %w", err)
	}
	return datadir.WriteFile(path, []byte(secret+"\n"))
}
