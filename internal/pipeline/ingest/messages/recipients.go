package messages

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/render"
)

// A recipient is a recipient of the request.
type recipient struct {
	people.DirectRecipient
	index int // in the request
	data  json.RawMessage
}

// pointerOf returns the pointer to a recipient in the request.
func (d *draft) pointerOf(a *recipient) string {
	if !d.posted.Direct.List {
		return ""
	}
	return fmt.Sprintf("/recipients/%d", a.index)
}

// setRecipients adds the valid recipients to the event. It creates missing subscribers after all recipients are checked.
func (d *draft) setRecipients(ctx context.Context, subscribers *registry.Registry, request *wire.MessageRequest) error {
	if err := d.checkRecipients(ctx, subscribers, request); err != nil {
		return err
	}
	if err := d.checkSize(); err != nil {
		return err
	}
	return d.createAudience(ctx, subscribers)
}

// createAudience creates missing subscribers, and adds the recipients to the event.
func (d *draft) createAudience(ctx context.Context, subscribers *registry.Registry) error {
	made := make([]people.DirectRecipient, len(d.recipients))
	for i := range d.recipients {
		made[i] = d.recipients[i].DirectRecipient
	}
	if err := subscribers.CreateDirectRecipients(ctx, d.posted.Service, d.channel, made); err != nil {
		return err
	}
	audience := make([]fanfare.Recipient, len(made))
	for i, a := range made {
		if a.Err != nil {
			return a.Err
		}
		d.recipients[i].Place = a.Place
		audience[i] = fanfare.Recipient{Subscriber: a.Place, Data: d.recipients[i].data}
	}
	slices.SortFunc(audience, func(a, b fanfare.Recipient) int { return cmp.Compare(a.Subscriber, b.Subscriber) })
	d.posted.Direct.Recipients = audience
	return nil
}

// checkRecipients looks up the recipients and renders the message for each. It refuses recipients with an error, and
// returns an error if none is left or the request requires all or nothing.
func (d *draft) checkRecipients(ctx context.Context, people *registry.Registry, request *wire.MessageRequest) error {
	asked := request.Recipients
	if !d.posted.Direct.List {
		asked = []wire.To{{To: request.To, Subscriber: request.Subscriber}}
	}
	if err := d.findRecipients(ctx, people, asked); err != nil {
		return err
	}
	d.refuseRepeats()
	if err := d.renderEach(ctx, people); err != nil {
		return err
	}
	wrong, err := d.refuse()
	if err != nil {
		return err
	}
	switch {
	case len(wrong) == 0:
		return nil
	case !d.posted.Direct.List:
		return wrong[0]
	case len(d.recipients) == 0 || request.AllOrNothing:
		verb := "are"
		if len(wrong) == 1 {
			verb = "is"
		}
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/recipients", Message: fmt.Sprintf("%d of %d recipients %s invalid; nothing was sent", len(wrong), len(asked), verb),
			Hint: "correct or remove the recipients listed in errors", Details: wrong[:min(len(wrong), wire.MaxErrors)]}
	}
	return nil
}

// refuse removes the recipients that have an error, and returns the errors.
func (d *draft) refuse() (wrong []*fanfare.Error, err error) {
	good := d.recipients[:0]
	for i := range d.recipients {
		a := &d.recipients[i]
		if a.Err == nil {
			good = append(good, *a)
			continue
		}
		e, ok := errors.AsType[*fanfare.Error](a.Err)
		if !ok {
			return nil, a.Err
		}
		wrong = append(wrong, e)
		d.refused = append(d.refused, wire.RecipientError{Index: a.index, Error: wire.MemberOf(e)})
	}
	d.recipients = good
	return wrong, nil
}

// findRecipients looks up the addresses and ids.
func (d *draft) findRecipients(ctx context.Context, subscribers *registry.Registry, asked []wire.To) error {
	found := make([]people.DirectRecipient, len(asked))
	for i := range asked {
		found[i].Address, found[i].Subscriber = asked[i].To, asked[i].Subscriber
	}
	if err := subscribers.FindDirectRecipients(ctx, d.posted.Service, d.channel, found); err != nil {
		return err
	}
	d.recipients = make([]recipient, len(asked))
	for i := range asked {
		a := &d.recipients[i]
		*a = recipient{found[i], i, asked[i].Data}
		if err := misnamed(&asked[i]); err != nil {
			a.Err = err
		}
		a.Err = fanfare.Below(d.pointerOf(a), a.Err)
	}
	return nil
}

// misnamed returns the error of a recipient that is invalid in itself.
func misnamed(to *wire.To) error {
	switch data := bytes.TrimLeft(to.Data, " \t\r\n"); {
	case (to.To != "") == (to.Subscriber != ""):
		return &fanfare.Error{Code: fanfare.Invalid, Message: "a recipient must have either to or subscriber", Hint: "set to (an address) or subscriber (an id)"}
	case len(data) > 0 && data[0] != '{':
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/data", Message: "data must be an object"}
	}
	return nil
}

// refuseRepeats refuses all but the first occurrence of a person.
func (d *draft) refuseRepeats() {
	places, addresses := map[fanfare.RowID]int{}, map[string]int{}
	for i := range d.recipients {
		a := &d.recipients[i]
		if a.Err != nil {
			continue
		}
		first, again := 0, false
		if a.Place != 0 {
			if first, again = places[a.Place]; !again {
				places[a.Place] = i
			}
		} else if first, again = addresses[a.Address]; !again {
			addresses[a.Address] = i
		}
		if again {
			a.Err = &fanfare.Error{Code: fanfare.Invalid, Pointer: d.pointerOf(a), Message: fmt.Sprintf("this person is already recipient %d of the list", first), Hint: "list each person once"}
		}
	}
}

// renderEach renders the message for each recipient.
func (d *draft) renderEach(ctx context.Context, subscribers *registry.Registry) error {
	var page []byte
	return d.eachValid(ctx, subscribers, func(a *recipient, r *render.Recipient) {
		var err error
		if _, page, err = d.writer.Write(page[:0], r); err != nil {
			a.Err = d.renderError(d.pointerOf(a), err)
		}
	})
}

// eachValid visits the recipients that have no error.
func (d *draft) eachValid(ctx context.Context, subscribers *registry.Registry, visit func(a *recipient, r *render.Recipient)) error {
	var places []fanfare.RowID
	for i := range d.recipients {
		if a := &d.recipients[i]; a.Err == nil && a.Place != 0 {
			places = append(places, a.Place)
		}
	}
	slices.Sort(places)
	rows := make(map[fanfare.RowID]people.SubscriberRow, len(places))
	err := subscribers.Subscribers(ctx, places, func(r *people.SubscriberRow) error {
		row := *r
		row.Attributes = bytes.Clone(r.Attributes)
		rows[r.Place] = row
		return nil
	})
	if err != nil {
		return err
	}
	for i := range d.recipients {
		a := &d.recipients[i]
		if a.Err != nil {
			continue
		}
		who, known := rows[a.Place]
		if !known {
			who = people.SubscriberRow{ID: people.SubscriberID(0), Address: a.Address}
		}
		recipient := compose.Recipient(&who, d.posted)
		recipient.Data = a.data
		visit(a, recipient)
	}
	return nil
}

// checkSize refuses a message that is too large for one event.
func (d *draft) checkSize() error {
	size := len(d.posted.Event.Data) + len(d.recipients)*recipientBytes + len(d.posted.Direct.Files)*fileBytes
	if c := d.posted.Direct.Content; c != nil {
		size += len(c.Subject) + len(c.Text) + len(c.HTML)
	}
	if c := d.posted.Content; c != nil {
		size += len(c.Subject) + len(c.Text) + len(c.HTML)
	}
	for i := range d.recipients {
		size += len(d.recipients[i].data)
	}
	if size <= maxKeptBytes {
		return nil
	}
	return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("data, content and recipients have %d bytes in total; at most %d are allowed", size, maxKeptBytes), Hint: "send the list in parts"}
}

// renderError translates a rendering error into the terms of the request: the data lacks a value that the template uses.
func (d *draft) renderError(at string, err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err
	}
	moved := *e
	if !strings.HasPrefix(e.Pointer, "/templates/") {
		moved.Pointer = at + e.Pointer
		return &moved
	}
	moved.Message = d.title + ", " + path.Base(e.Pointer) + ": " + e.Message
	moved.Pointer = at + "/data"
	if moved.Hint == "" && strings.Contains(e.Message, "undefined variable ") {
		moved.Hint = "add it to the data, or give it a default in the template: {{ ... | default: \"\" }}"
	}
	return &moved
}

// contentPointer returns the pointer, in the request, of a part of its content.
func contentPointer(pointer string) string {
	pointer = strings.Replace(pointer, "/templates/"+compose.ContentName, "/content", 1)
	if pointer == "/content/images" { // the images of content are attachments
		return "/attachments"
	}
	return pointer
}
