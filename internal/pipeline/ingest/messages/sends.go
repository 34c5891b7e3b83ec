package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/state"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/render/liquid"
)

// sendSource is the source of the events of sends. An Idempotency-Key of a client cannot be the id of one, because messages of
// clients have another source.
const sendSource = "/sends"

// A Checker checks the recipients of a send as those of a message are checked. It belongs to one goroutine.
type Checker struct {
	messages *Messages
	draft    *draft
}

// A RecipientCheck is the result for one recipient.
type RecipientCheck struct {
	Address    string         // in normal form; "" if there is none
	Row        fanfare.RowID  // row id of the address; 0: no subscriber has it yet
	Suppressed string         // why nothing may be sent to the address, or ""
	Missing    []string       // values that the template needs and the recipient lacks, such as name
	Err        *fanfare.Error // any other error; its pointer begins at the recipient
}

// NewChecker returns a checker of the recipients of a message, and the message as it would be sent: with the version of its template.
func (m *Messages) NewChecker(ctx context.Context, service string, request *wire.MessageRequest) (*Checker, *wire.MessageRequest, error) {
	posted := m.postedPart(service, request, "", 0)
	d, err := m.draft(ctx, posted, request, state.ChooseReleased)
	if err != nil {
		return nil, nil, err
	}
	fixed := *request
	fixed.Template = strings.TrimPrefix(d.title, "template ")
	fixed.Lane = posted.Lane.String()
	return &Checker{m, d}, &fixed, nil
}

// postedPart returns the event of a part of a send, without recipients.
func (m *Messages) postedPart(service string, request *wire.MessageRequest, send string, part int) *fanfare.AcceptedEvent {
	return &fanfare.AcceptedEvent{
		Service: service, Lane: fanfare.Bulk, ReceivedAt: m.options.Clock.Now(),
		Event:  fanfare.Event{ID: fmt.Sprintf("send-%s-%d", send, part), Source: sendSource, Type: messageType, Data: request.Data},
		Direct: &fanfare.Direct{Reference: request.Reference, Send: send, List: true},
	}
}

// Hold returns why a message to so many recipients would wait for approval, or "".
func (c *Checker) Hold(recipients int64) string {
	posted := *c.draft.posted
	posted.Direct = nil
	return c.messages.options.Registry.Hold(&posted, recipients)
}

// Check checks recipients, without regard to repetitions.
func (c *Checker) Check(ctx context.Context, list []wire.To) ([]RecipientCheck, error) {
	d, people := c.draft, c.messages.options.Registry
	if err := d.findRecipients(ctx, people, list); err != nil {
		return nil, err
	}
	results := make([]RecipientCheck, len(list))
	var page []byte
	err := d.eachValid(ctx, people, func(a *recipient, r *render.Recipient) {
		result := &results[a.index]
		var seen uint64
		result.Suppressed = people.SuppressionReason(d.channel, a.Address, &seen)
		var err error
		_, page, err = d.writer.Write(page[:0], r)
		for err != nil && len(result.Missing) < maxMissing {
			name := missingValue(err)
			filled := withValue(r.Data, name)
			if filled == nil {
				break
			}
			result.Missing, r.Data = append(result.Missing, name), filled
			_, page, err = d.writer.Write(page[:0], r)
		}
		if err != nil && len(result.Missing) == 0 {
			a.Err = d.renderError("", err)
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range d.recipients {
		a, result := &d.recipients[i], &results[i]
		result.Row = a.Place
		if a.Err == nil {
			result.Address = a.Address
			continue
		}
		e, ok := errors.AsType[*fanfare.Error](a.Err)
		if !ok {
			return nil, a.Err
		}
		moved := *e
		moved.Pointer = strings.TrimPrefix(e.Pointer, d.pointerOf(a))
		result.Err = &moved
	}
	return results, nil
}

// maxMissing is the maximum number of missing values that are listed for a recipient.
const maxMissing = 100

// missingValue returns the name of the recipient's own value that is missing according to an error, or "".
func missingValue(err error) string {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return ""
	}
	_, variable, found := strings.Cut(e.Message, liquid.UndefinedPrefix)
	if !found {
		return ""
	}
	if name, field := strings.CutPrefix(variable, "(("); field {
		return strings.TrimSpace(strings.TrimSuffix(name, "))"))
	}
	if quoted, bracket := strings.CutPrefix(variable, `sub["`); bracket {
		name, _, _ := strings.Cut(quoted, `"]`)
		return name
	}
	name, own := strings.CutPrefix(variable, "sub.")
	if !own {
		return ""
	}
	if end := strings.IndexAny(name, ".["); end >= 0 {
		return name[:end]
	}
	return name
}

// withValue returns data with a stand-in for a value, so that the next missing value is found; nil if it has the value already, or the name is "".
func withValue(data json.RawMessage, name string) json.RawMessage {
	if name == "" {
		return nil
	}
	values := map[string]json.RawMessage{}
	if len(data) > 0 && json.Unmarshal(data, &values) != nil {
		return nil
	}
	if _, has := values[name]; has {
		return nil
	}
	values[name] = json.RawMessage(`"-"`)
	text, err := json.Marshal(values)
	if err != nil {
		return nil
	}
	return text
}

// Render returns the message for one recipient.
func (c *Checker) Render(ctx context.Context, to wire.To) (wire.Preview, error) {
	d := c.draft
	if err := d.findRecipients(ctx, c.messages.options.Registry, []wire.To{to}); err != nil {
		return wire.Preview{}, err
	}
	shown := wire.Preview{Template: strings.TrimPrefix(d.title, "template "), Data: d.posted.Event.Data}
	err := d.eachValid(ctx, c.messages.options.Registry, func(a *recipient, r *render.Recipient) {
		shown.To = a.Address
		var p render.Preview
		if full, ok := d.writer.(interface {
			Preview(r *render.Recipient) (render.Preview, error)
		}); ok {
			p, a.Err = full.Preview(r)
		} else {
			p.Message, _, a.Err = d.writer.Write(nil, r)
		}
		a.Err = d.renderError("", a.Err)
		shown.Subject, shown.Text, shown.HTML = p.Subject, p.Text, p.HTML
		shown.Raw, shown.Attachments = string(p.Message.Body)+string(p.Message.Attachments), wire.AttachmentsOf(p.Files)
	})
	if err == nil {
		err = d.recipients[0].Err
	}
	return shown, err
}

// A Part is a part of a send.
type Part struct {
	Send    string
	Number  int // of the part
	Request *wire.MessageRequest
	Begun   time.Time // when sending it was begun before; zero: it was not
	Only    bool      // return its outcome if it was sent, and do not send it
}

// ErrNotSent is the error of a Part with Only that was not sent.
var ErrNotSent = errors.New("the part was not sent")

// A PartOutcome is the result of sending a part.
type PartOutcome struct {
	Event   fanfare.EventRef // zero: all recipients were refused
	Rows    []fanfare.RowID  // row ids of the recipients, in their order; 0: refused
	Refused []wire.RecipientError
}

// SendPart sends a part of a send to all recipients that are valid. It is durable when SendPart returns. If the part was begun before, and
// its event is in EVENTS or in the store, it is not sent again.
func (m *Messages) SendPart(ctx context.Context, service string, p *Part) (o PartOutcome, err error) {
	if err := m.options.Disk.Check(); err != nil {
		return o, err
	}
	defer m.options.Accepting.Enter()()
	posted := m.postedPart(service, p.Request, p.Send, p.Number)
	known := false
	if !p.Begun.IsZero() {
		if o.Event, known, err = m.findPart(ctx, posted, p.Begun); err != nil {
			return o, err
		}
	}
	if p.Only && !known {
		return o, ErrNotSent
	}
	d, err := m.draft(ctx, posted, p.Request, state.ChooseReleased)
	if err != nil {
		return o, err
	}
	if err := d.findRecipients(ctx, m.options.Registry, p.Request.Recipients); err != nil {
		return o, err
	}
	d.refuseRepeats()
	if known {
		return m.outcome(ctx, d, o)
	}
	if err := d.renderEach(ctx, m.options.Registry); err != nil {
		return o, err
	}
	if _, err := d.refuse(); err != nil {
		return o, err
	}
	o.Refused, o.Rows = d.refused, make([]fanfare.RowID, len(p.Request.Recipients))
	if len(d.recipients) == 0 {
		return o, nil
	}
	if err := d.checkSize(); err != nil {
		return o, err
	}
	if err := d.createAudience(ctx, m.options.Registry); err != nil {
		return o, err
	}
	for i := range d.recipients {
		o.Rows[d.recipients[i].index] = d.recipients[i].Place
	}
	results, err := m.options.Collector.Post(ctx, []fanfare.AcceptedEvent{*posted})
	switch {
	case err != nil:
		return o, err
	case results[0].Err != nil:
		return o, results[0].Err
	}
	o.Event = results[0].Ref
	return o, nil
}

// outcome returns the outcome of a part that was sent before.
func (m *Messages) outcome(ctx context.Context, d *draft, o PartOutcome) (PartOutcome, error) {
	sent, err := m.options.Accepted(ctx, o.Event)
	if err != nil {
		return o, err
	}
	o.Rows = make([]fanfare.RowID, len(d.recipients))
	for i := range d.recipients {
		a := &d.recipients[i]
		if a.Place != 0 && sent.Direct != nil && sent.Direct.To(a.Place) != nil {
			o.Rows[i] = a.Place
			continue
		}
		e := &fanfare.Error{Code: fanfare.Invalid, Message: "the recipient was refused when the part was sent"}
		if own, ok := errors.AsType[*fanfare.Error](a.Err); ok {
			e = own
		}
		o.Refused = append(o.Refused, wire.RecipientError{Index: i, Error: wire.MemberOf(e)})
	}
	return o, nil
}

// clockSlack is the maximum difference between the clocks of EVENTS and of the server.
const clockSlack = time.Minute

// findPart finds the event of a part that was begun before. It is in EVENTS, or was matched and is in the store. Events are removed from EVENTS
// after they are stored, so it looks there first.
func (m *Messages) findPart(ctx context.Context, posted *fanfare.AcceptedEvent, begun time.Time) (ref fanfare.EventRef, found bool, err error) {
	if ref, found = m.options.Collector.Known(posted); found {
		return ref, true, nil
	}
	begun = begun.Add(-clockSlack)
	err = m.options.Replay(ctx, begun, func(seq uint64, _ time.Time, group []byte) error {
		events, err := eventgroup.Decode(group, seq)
		for _, e := range events {
			if e.Service == posted.Service && e.Event.Source == sendSource && e.Direct != nil && e.Event.ID == posted.Event.ID && !found {
				ref, found = e.Ref(), true
			}
		}
		return err
	})
	if err != nil || found {
		return ref, found, err
	}
	days, err := m.options.Store.Days(ctx)
	if err != nil {
		return ref, false, err
	}
	for _, day := range days {
		if day < fanfare.DayOf(begun) {
			continue
		}
		same, err := m.options.Store.FindEvents(ctx, day, posted.Service, posted.Event.ID)
		if fanfare.CodeOf(err) == fanfare.NotFound && err != nil { // the day was removed in the meantime
			continue
		}
		if err != nil {
			return ref, false, err
		}
		for _, seq := range same { // a client may have chosen the same id, for another source
			ref = fanfare.EventRef{Day: day, Seq: seq}
			is, err := m.options.Store.Posted(ctx, ref)
			if err != nil {
				return ref, false, err
			}
			if is.Event.Source == sendSource && is.Direct != nil {
				return ref, true, nil
			}
		}
	}
	return ref, false, nil
}
