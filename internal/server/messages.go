package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/privacy"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// messages takes direct sends, which travel as events with an audience, and
// tells what became of them.
type messages struct {
	registry    *registry.Registry
	templates   *compose.Templates
	attachments *compose.Attachments
	files       filetype.Policy
	most        int // bytes that the files of a message take, as they are sent
	collector   *ingest.Collector
	recorder    *record.Recorder
	traces      *report.Traces
	store       *deliveries.Store
	queue       ingest.Queue
	floor       *datadir.DiskFloor
	clock       clock.Clock
	keeping     *privacy.Barrier // from who is found to what is kept
}

const (
	messageSource = "/messages" // of the event that a direct send becomes
	messageType   = "message"
	// maxKeptBytes bounds what of a direct send is kept: its data and content
	// and those of its recipients. It is below the limit of an intake group.
	maxKeptBytes = 512 << 10
	// recipientBytes is what a recipient takes beside its data.
	recipientBytes = 32
)

// Send keeps a direct send for all whose recipient and data are good, and is
// durable when it returns.
func (m *messages) Send(ctx context.Context, service string, request *wire.MessageRequest, once httpapi.Once) (httpapi.Sent, error) {
	return m.send(ctx, service, request, once, false)
}

// SendAsked is Send to somebody who has just asked for it.
func (m *messages) SendAsked(ctx context.Context, service string, request *wire.MessageRequest) error {
	_, err := m.send(ctx, service, request, httpapi.Once{}, true)
	return err
}

func (m *messages) send(ctx context.Context, service string, request *wire.MessageRequest, once httpapi.Once, asked bool) (httpapi.Sent, error) {
	posted := &fanfare.AcceptedEvent{
		Service: service, Lane: fanfare.Urgent, ReceivedAt: m.clock.Now(),
		Event:     fanfare.Event{ID: once.Key, Source: messageSource, Type: messageType, Data: request.Data},
		NotBefore: request.NotBefore, Expires: request.Expires,
		Direct: &fanfare.Direct{Reference: request.Reference, Digest: once.Digest, List: request.Recipients != nil, Asked: asked},
	}
	if once.Key == "" {
		posted.Event.ID = rand.Text()
	} else if ref, known := m.collector.Known(posted); known {
		return m.again(ctx, posted, ref, request)
	}
	if err := m.floor.Check(); err != nil {
		return httpapi.Sent{}, err
	}
	defer m.keeping.Enter()()
	d, err := m.draft(ctx, posted, request, registry.ChooseReleased)
	if err != nil {
		return httpapi.Sent{}, err
	}
	if err := d.address(ctx, m.registry, request); err != nil {
		return httpapi.Sent{}, err
	}
	if err := m.keepFiles(ctx, d); err != nil {
		return httpapi.Sent{}, err
	}
	list := []fanfare.AcceptedEvent{*posted}
	results, err := m.collector.Post(ctx, list)
	switch {
	case err != nil:
		return httpapi.Sent{}, err
	case results[0].Err != nil:
		return httpapi.Sent{}, results[0].Err
	case results[0].Duplicate: // the same key came twice at the same time
		return m.again(ctx, posted, results[0].Ref, request)
	}
	message := m.describe(&list[0])
	message.Errors = d.refused
	return httpapi.Sent{Ref: results[0].Ref, Message: message}, nil
}

// again answers a key that is known: with the message that it made first, if it
// came with the same body.
func (m *messages) again(ctx context.Context, posted *fanfare.AcceptedEvent, ref fanfare.EventRef, request *wire.MessageRequest) (httpapi.Sent, error) {
	first, err := m.posted(ctx, ref)
	if err != nil {
		return httpapi.Sent{}, err
	}
	if first.Direct == nil || first.Direct.Digest != posted.Direct.Digest {
		return httpapi.Sent{}, &fanfare.Error{Code: fanfare.KeyReused, Message: "this Idempotency-Key came with another body before", Hint: "make a new key for a new message"}
	}
	message, err := m.Message(ctx, posted.Service, ref)
	if err != nil {
		return httpapi.Sent{}, err
	}
	if first.Direct.List {
		// Who was refused is not kept. It is found out anew, and nothing is made.
		if d, err := m.draft(ctx, posted, request, registry.ChooseReleased); err == nil && d.find(ctx, m.registry, request) == nil {
			message.Errors = d.refused
		}
	}
	return httpapi.Sent{Ref: ref, Message: message, Again: true}, nil
}

// A draft is a direct send that is being checked.
type draft struct {
	posted  *fanfare.AcceptedEvent
	channel *catalog.Channel
	title   string // of the template, for errors
	writer  compose.Writer
	files   map[fanfare.Sum][]byte // that came with the request

	people  []addressee
	refused []wire.RecipientError
}

// draft finds what the request names, and renders what all recipients share.
func (m *messages) draft(ctx context.Context, posted *fanfare.AcceptedEvent, request *wire.MessageRequest, may registry.Choice) (*draft, error) {
	d := &draft{posted: posted, title: "content"}
	var err error
	if d.channel, err = m.registry.ChooseChannel(posted.Service, request.Channel); err != nil {
		return nil, err
	}
	if posted.Direct.List {
		posted.Lane = fanfare.Bulk
	}
	if request.Lane != "" {
		if posted.Lane, err = fanfare.ParseLane(request.Lane); err != nil {
			return nil, err
		}
	}
	posted.Direct.Channel = d.channel.Number
	var source *catalog.TemplateSource
	if request.Template != "" {
		source, err = m.registry.ChooseTemplate(posted.Service, request.Template, may)
		if err != nil {
			return nil, err
		}
		posted.Direct.Template = source.Number
		d.title = fmt.Sprintf("template %s@%d", source.Name, source.Version)
	} else {
		posted.Direct.Content = (*fanfare.Content)(request.Content)
	}
	if err := m.takeFiles(d, request); err != nil {
		return nil, err
	}
	var template *render.Template
	if source != nil && source.Number == 0 { // a draft
		template, err = render.Compile(compose.Source(source))
	} else {
		template, err = m.templates.Of(posted, posted.Direct.Template)
	}
	if err == nil {
		err = m.checkFiles(d, template)
	}
	if err != nil {
		return nil, inContent(err)
	}
	event := fanfare.EventRef{Day: fanfare.DayOf(posted.ReceivedAt)}
	if d.channel.Driver == "webhook" {
		posting := compose.Posting(template, posted, event)
		posting.Complete = true
		d.writer, err = posting.Writer()
	} else {
		var mailing render.Mailing
		if mailing, err = compose.Mailing(template, posted, event, d.channel); err != nil {
			return nil, err
		}
		mailing.EncodeFiles = m.attachments.Read(d.content(ctx, m.registry))
		mailing.Complete = true // whoever sends it is told what their data lack
		d.writer, err = mailing.Writer()
	}
	if err != nil {
		return nil, d.unwritten("", err)
	}
	return d, nil
}

// posted reads a direct send as it was kept, whether it is matched yet or not.
func (m *messages) posted(ctx context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, error) {
	posted, _, err := report.Accepted(ctx, m.queue, m.store, ref)
	return posted, err
}

// inContent moves errors of a template that came with the request to where it
// stands there.
func inContent(err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err
	}
	moved := *e
	moved.Pointer = contentPointer(e.Pointer)
	moved.Details = nil
	for _, detail := range e.Details {
		other := *detail
		if other.Pointer == "" { // of the same part
			other.Pointer = e.Pointer
		}
		other.Pointer = contentPointer(other.Pointer)
		moved.Details = append(moved.Details, &other)
	}
	return &moved
}
