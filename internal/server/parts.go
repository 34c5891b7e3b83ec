package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/registry"
)

// The types here give the API and the stages the shape that they ask for.

// topics is the registry as intake sees it.
type topics struct {
	*registry.Registry
	audiences *audiences
}

// CheckAudience refuses a sender's condition over people that is none.
func (t topics) CheckAudience(service, filter string) error {
	_, err := t.audiences.strictly(service, filter)
	return err
}

// Intake finds the topic of an event.
func (t topics) Intake(service, topic string) (fanfare.Lane, func(json.RawMessage) error, error) {
	found, ok := t.Topic(service, topic)
	if !ok {
		return 0, nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("service %q has no topic %q", service, topic), Hint: "apply a document that declares it"}
	}
	return found.Lane, found.ValidateData, nil
}

// intake is the collector as the API sees it.
type intake struct{ collector *ingest.Collector }

// Post keeps events.
func (i intake) Post(ctx context.Context, events []fanfare.AcceptedEvent) ([]httpapi.Kept, error) {
	results, err := i.collector.Post(ctx, events)
	kept := make([]httpapi.Kept, len(results))
	for n, r := range results {
		kept[n] = httpapi.Kept(r)
	}
	return kept, err
}

// queue is EVENTS as traces see it.
type queue struct{ bus *bus.Bus }

// Queued finds an event that may not be matched yet.
func (q queue) Queued(ctx context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, time.Time, error) {
	if ref.Seq.Stream() == 0 { // the bus counts from 1
		return nil, time.Time{}, nil
	}
	group, kept, err := q.bus.EventGroup(ctx, ref.Seq.Stream())
	if err != nil || group == nil {
		return nil, kept, err
	}
	events, err := ingest.Decode(group, ref.Seq.Stream())
	if err != nil || ref.Seq.Index() >= len(events) {
		return nil, kept, err
	}
	posted := events[ref.Seq.Index()]
	if fanfare.DayOf(posted.ReceivedAt) != ref.Day { // an id that nobody was given
		return nil, kept, nil
	}
	return posted, kept, nil
}

// documents applies, and then puts changed channels in force.
type documents struct {
	*registry.Registry
	channels *channels.Channels
}

// Apply makes what the document says so, and notes what readers are going to mind of
// its templates.
func (d documents) Apply(ctx context.Context, doc *registry.Document) (registry.Diff, error) {
	diff, err := d.Registry.Apply(ctx, doc)
	if err != nil {
		return diff, err
	}
	diff.Notes = append(diff.Notes, findings(doc)...)
	return diff, d.channels.Reconcile(context.WithoutCancel(ctx))
}

// ApplyMember makes one member so.
func (d documents) ApplyMember(ctx context.Context, doc *registry.Document, check func(registry.Configuration) error) (registry.Configuration, error) {
	c, err := d.Registry.ApplyMember(ctx, doc, check)
	if err != nil {
		return c, err
	}
	return c, d.channels.Reconcile(context.WithoutCancel(ctx))
}

// DeleteMember takes one member away.
func (d documents) DeleteMember(ctx context.Context, m registry.Member, check func(registry.Configuration) error) error {
	if err := d.Registry.DeleteMember(ctx, m, check); err != nil {
		return err
	}
	return d.channels.Reconcile(context.WithoutCancel(ctx))
}

// subscriptions takes none below the disk floor.
type subscriptions struct {
	*registry.Registry
	floor *datadir.DiskFloor
}

// PutSubscriptions keeps subscriptions.
func (s subscriptions) PutSubscriptions(ctx context.Context, service string, puts []registry.Put, results []registry.PutResult) error {
	if err := s.floor.Check(); err != nil {
		return err
	}
	return s.Registry.PutSubscriptions(ctx, service, puts, results)
}

// Import begins to keep many.
func (s subscriptions) Import(service string) httpapi.Import {
	return &importing{Import: s.Registry.Import(service), floor: s.floor}
}

type importing struct {
	*registry.Import
	floor *datadir.DiskFloor
	full  error // of a step: no later one overtakes it
}

// Begin keeps some of them.
func (i *importing) Begin(ctx context.Context, puts []registry.Put, results []registry.PutResult) <-chan error {
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

// adminKey makes an admin key at the first start, or after its file was removed.
func adminKey(ctx context.Context, dir string, people *registry.Registry) error {
	path := filepath.Join(dir, datadir.AdminKey)
	if secret, err := os.ReadFile(path); err == nil {
		if who, known := people.Authenticate(datadir.TrimLine(secret)); known && who.Operator() {
			return nil
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("admin key: %w", err)
	}
	_, secret, err := people.CreateKey(ctx, "", registry.KeySettings{Name: "admin of the first start"})
	if err != nil {
		return fmt.Errorf("admin key: %w", err)
	}
	return os.WriteFile(path, []byte(secret+"\n"), 0o600)
}
