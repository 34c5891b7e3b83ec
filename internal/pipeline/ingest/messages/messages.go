package messages

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// Traces know the state of broadcasts and deliveries.
type Traces interface {
	Broadcast(ctx context.Context, event fanfare.EventRef) (fanfare.Broadcast, error)
	Deliveries(ctx context.Context, ref fanfare.EventRef, cursor string, limit int) ([]fanfare.Delivery, string, error)
}

// Options are the parts that Messages work with.
type Options struct {
	Registry    *registry.Registry
	Templates   *compose.Templates
	Attachments *compose.Attachments
	Files       filetype.Policy
	MaxBytes    int // limit of the files of a message, in their encoded size
	Collector   *ingest.Ingester
	Recorder    interface {
		Await(event fanfare.EventRef) (done <-chan struct{}, forget func())
	}
	Traces    Traces
	Accepted  func(ctx context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, error) // an event that may not be matched yet
	Store     *deliveries.Store
	Disk      *datadir.DiskFloor
	Clock     clock.Clock
	Estimate  func(channel uint16, messages int) wire.DryRunChannel
	Accepting interface{ Enter() (leave func()) } // an erasure waits for messages that are being accepted
	// Replay visits the groups of events in EVENTS since a time, oldest first.
	Replay func(ctx context.Context, since time.Time, visit func(seq uint64, kept time.Time, group []byte) error) error
}

// Messages accept direct messages and report their state.
type Messages struct{ options Options }

// New returns Messages.
func New(o Options) *Messages { return &Messages{o} }

const (
	messageSource = "/messages" // source of the event
	messageType   = "message"
	// maxKeptBytes is the limit of the stored size of a message: data and content, including those of its recipients. It is
	// below the limit of a group of events.
	maxKeptBytes = 512 << 10
	// recipientBytes is the stored size of a recipient without its data.
	recipientBytes = 32
)

// Send accepts a message for all recipients that are valid. The message is durable when Send returns.
func (m *Messages) Send(ctx context.Context, service string, request *wire.MessageRequest, once httpapi.Once) (httpapi.Sent, error) {
	return m.send(ctx, service, request, once, func(*fanfare.Direct) {})
}

// SendNotify sends a message of a client of GOV.UK Notify to one recipient.
func (m *Messages) SendNotify(ctx context.Context, service string, request *wire.MessageRequest, origin fanfare.NotifyOrigin) (fanfare.EventRef, error) {
	sent, err := m.send(ctx, service, request, httpapi.Once{}, func(d *fanfare.Direct) { d.Notify = &origin })
	return sent.Ref, err
}

// SendAsked sends a message that its recipient has just requested.
func (m *Messages) SendAsked(ctx context.Context, service string, request *wire.MessageRequest) error {
	_, err := m.send(ctx, service, request, httpapi.Once{}, func(d *fanfare.Direct) { d.Asked = true })
	return err
}

func (m *Messages) send(ctx context.Context, service string, request *wire.MessageRequest, once httpapi.Once, mark func(*fanfare.Direct)) (httpapi.Sent, error) {
	posted := &fanfare.AcceptedEvent{
		Service: service, Lane: fanfare.Urgent, ReceivedAt: m.options.Clock.Now(),
		Event:     fanfare.Event{ID: once.Key, Source: messageSource, Type: messageType, Data: request.Data},
		NotBefore: request.NotBefore, Expires: request.Expires,
		Direct: &fanfare.Direct{Reference: request.Reference, Digest: once.Digest, List: request.Recipients != nil, ReplyTo: request.ReplyTo, Unsubscribe: request.Unsubscribe},
	}
	mark(posted.Direct)
	if once.Key == "" {
		posted.Event.ID = rand.Text()
	} else if ref, known := m.options.Collector.Known(posted); known {
		return m.repeated(ctx, posted, ref, request)
	}
	if err := m.options.Disk.Check(); err != nil {
		return httpapi.Sent{}, err
	}
	defer m.options.Accepting.Enter()()
	d, err := m.draft(ctx, posted, request, state.ChooseReleased)
	if err != nil {
		return httpapi.Sent{}, err
	}
	if err := d.setRecipients(ctx, m.options.Registry, request); err != nil {
		return httpapi.Sent{}, err
	}
	if err := m.keepFiles(ctx, d); err != nil {
		return httpapi.Sent{}, err
	}
	list := []fanfare.AcceptedEvent{*posted}
	results, err := m.options.Collector.Post(ctx, list)
	switch {
	case err != nil:
		return httpapi.Sent{}, err
	case results[0].Err != nil:
		return httpapi.Sent{}, results[0].Err
	case results[0].Duplicate: // two requests with this key at the same time
		return m.repeated(ctx, posted, results[0].Ref, request)
	}
	message := m.describe(&list[0])
	message.Errors = d.refused
	return httpapi.Sent{Ref: results[0].Ref, Message: message}, nil
}

// repeated returns the first message of an Idempotency-Key, if the request has the same body.
func (m *Messages) repeated(ctx context.Context, posted *fanfare.AcceptedEvent, ref fanfare.EventRef, request *wire.MessageRequest) (httpapi.Sent, error) {
	first, err := m.options.Accepted(ctx, ref)
	if err != nil {
		return httpapi.Sent{}, err
	}
	if first.Direct == nil || first.Direct.Digest != posted.Direct.Digest {
		return httpapi.Sent{}, &fanfare.Error{Code: fanfare.KeyReused, Message: "this Idempotency-Key was already used with a different body", Hint: "use a new key for a new message"}
	}
	message, err := m.Message(ctx, posted.Service, ref)
	if err != nil {
		return httpapi.Sent{}, err
	}
	if first.Direct.List {
		// Refused recipients are not stored: check them again, without sending.
		if d, err := m.draft(ctx, posted, request, state.ChooseReleased); err == nil && d.checkRecipients(ctx, m.options.Registry, request) == nil {
			message.Errors = d.refused
		}
	}
	return httpapi.Sent{Ref: ref, Message: message, Again: true}, nil
}

// A draft is a message that is being checked.
type draft struct {
	posted  *fanfare.AcceptedEvent
	channel *catalog.Channel
	title   string // of the template, for errors
	writer  compose.Writer
	files   map[fanfare.Sum][]byte // of the request

	recipients []recipient
	refused    []wire.RecipientError
}

// draft looks up the objects in the request, and renders the parts that all recipients share.
func (m *Messages) draft(ctx context.Context, posted *fanfare.AcceptedEvent, request *wire.MessageRequest, may state.TemplateChoice) (*draft, error) {
	d := &draft{posted: posted, title: "content"}
	var err error
	if d.channel, err = m.options.Registry.ChooseChannel(posted.Service, request.Channel); err != nil {
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
		source, err = m.options.Registry.ChooseTemplate(posted.Service, request.Template, may)
		if err != nil {
			return nil, err
		}
		posted.Direct.Template = source.Number
		d.title = fmt.Sprintf("template %s@%d", source.Name, source.Version)
	} else {
		posted.Direct.Content = (*fanfare.Content)(request.Content)
	}
	if d.channel.SendsDocuments() {
		for at, text := range map[string]string{"/reply_to": request.ReplyTo, "/unsubscribe_url": request.Unsubscribe} {
			if text != "" {
				return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: at, Message: "channel " + d.channel.Name + " does not send mail", Hint: "omit " + at[1:] + ", or use a channel that sends mail"}
			}
		}
	}
	if err := m.takeFiles(d, request); err != nil {
		return nil, err
	}
	var template *render.Template
	if source != nil && source.Number == 0 { // a draft
		template, err = render.Compile(compose.Source(source))
	} else {
		template, err = m.options.Templates.Of(posted, posted.Direct.Template)
	}
	if err == nil {
		err = m.checkFiles(d, template)
	}
	if err != nil {
		return nil, inContent(err)
	}
	event := fanfare.EventRef{Day: fanfare.DayOf(posted.ReceivedAt)}
	if d.channel.SendsDocuments() {
		posting := compose.Posting(template, posted, event)
		posting.Texts, posting.RefuseMissing = d.channel.SendsTexts(), true
		d.writer, err = posting.Writer()
	} else {
		var mailing render.MailBatch
		if mailing, err = compose.Mailing(template, posted, event, d.channel); err != nil {
			return nil, err
		}
		mailing.EncodeFiles = m.options.Attachments.Read(d.content(ctx, m.options.Registry))
		mailing.RefuseMissing = true // missing data is an error
		d.writer, err = mailing.Writer()
	}
	if err != nil {
		return nil, d.renderError("", err)
	}
	return d, nil
}

// inContent changes the pointers of an error in a template of the request.
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
