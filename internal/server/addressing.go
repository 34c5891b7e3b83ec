package server

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
	"fanfare.dev/fanfare/internal/pipeline/compose"
	"fanfare.dev/fanfare/internal/registry"
)

// An addressee is a recipient of the request on its way into the audience.
type addressee struct {
	registry.Addressee
	index int // in the request
	data  json.RawMessage
}

// at points to an addressee in the request.
func (d *draft) at(a *addressee) string {
	if !d.posted.Direct.List {
		return ""
	}
	return fmt.Sprintf("/recipients/%d", a.index)
}

// address finds or makes the recipients and puts the good ones into the event.
// Nothing is made before all have been checked.
func (d *draft) address(ctx context.Context, people *registry.Registry, request *wire.MessageRequest) error {
	if err := d.find(ctx, people, request); err != nil {
		return err
	}
	if err := d.fits(); err != nil {
		return err
	}
	made := make([]registry.Addressee, len(d.people))
	for i := range d.people {
		made[i] = d.people[i].Addressee
	}
	if err := people.MakeAddressees(ctx, d.posted.Service, d.channel, made); err != nil {
		return err
	}
	audience := make([]fanfare.Recipient, len(made))
	for i, a := range made {
		if a.Err != nil {
			return a.Err
		}
		audience[i] = fanfare.Recipient{Subscriber: a.Place, Data: d.people[i].data}
	}
	slices.SortFunc(audience, func(a, b fanfare.Recipient) int { return cmp.Compare(a.Subscriber, b.Subscriber) })
	d.posted.Direct.Recipients = audience
	return nil
}

// find looks the recipients up and writes each a message, to see whether that
// can be done. Those for whom it cannot are refused: the error is set where
// nobody is left, or where one is enough.
func (d *draft) find(ctx context.Context, people *registry.Registry, request *wire.MessageRequest) error {
	asked := request.Recipients
	if !d.posted.Direct.List {
		asked = []wire.To{{To: request.To, Subscriber: request.Subscriber}}
	}
	if err := d.look(ctx, people, asked); err != nil {
		return err
	}
	d.refuseRepeats()
	if err := d.try(ctx, people); err != nil {
		return err
	}
	var wrong []*fanfare.Error
	good := d.people[:0]
	for i := range d.people {
		a := &d.people[i]
		if a.Err == nil {
			good = append(good, *a)
			continue
		}
		e, ok := errors.AsType[*fanfare.Error](a.Err)
		if !ok {
			return a.Err
		}
		wrong = append(wrong, e)
		d.refused = append(d.refused, wire.RecipientError{Index: a.index, Error: wire.MemberOf(e)})
	}
	d.people = good
	switch {
	case len(wrong) == 0:
		return nil
	case !d.posted.Direct.List:
		return wrong[0]
	case len(good) == 0 || request.AllOrNothing:
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/recipients", Message: fmt.Sprintf("%d of %d recipients are wrong, nothing was sent", len(wrong), len(asked)),
			Hint: "mend or leave out those that are named", Details: wrong[:min(len(wrong), wire.MaxErrors)]}
	}
	return nil
}

// look finds who has the addresses and ids.
func (d *draft) look(ctx context.Context, people *registry.Registry, asked []wire.To) error {
	found := make([]registry.Addressee, len(asked))
	for i := range asked {
		found[i].Address, found[i].Subscriber = asked[i].To, asked[i].Subscriber
	}
	if err := people.FindAddressees(ctx, d.posted.Service, d.channel, found); err != nil {
		return err
	}
	d.people = make([]addressee, len(asked))
	for i := range asked {
		a := &d.people[i]
		*a = addressee{found[i], i, asked[i].Data}
		if err := misnamed(&asked[i]); err != nil {
			a.Err = err
		}
		a.Err = fanfare.Below(d.at(a), a.Err)
	}
	return nil
}

// misnamed says what in a recipient is wrong by itself.
func misnamed(to *wire.To) error {
	switch data := bytes.TrimLeft(to.Data, " \t\r\n"); {
	case (to.To != "") == (to.Subscriber != ""):
		return &fanfare.Error{Code: fanfare.Invalid, Message: "it does not say to whom", Hint: "give to (an address) or subscriber (an id)"}
	case len(data) > 0 && data[0] != '{':
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/data", Message: "data must be an object"}
	}
	return nil
}

// refuseRepeats leaves each person in the list once.
func (d *draft) refuseRepeats() {
	places, addresses := map[fanfare.RowID]int{}, map[string]int{}
	for i := range d.people {
		a := &d.people[i]
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
			a.Err = &fanfare.Error{Code: fanfare.Invalid, Pointer: d.at(a), Message: fmt.Sprintf("the same person as recipient %d of the list", first), Hint: "name everybody once"}
		}
	}
}

// try writes each message as it would leave now.
func (d *draft) try(ctx context.Context, people *registry.Registry) error {
	var places []fanfare.RowID
	for i := range d.people {
		if a := &d.people[i]; a.Err == nil && a.Place != 0 {
			places = append(places, a.Place)
		}
	}
	slices.Sort(places)
	rows := make(map[fanfare.RowID]registry.SubscriberRow, len(places))
	err := people.Subscribers(ctx, places, func(r *registry.SubscriberRow) error {
		row := *r
		row.Attributes = bytes.Clone(r.Attributes)
		rows[r.Place] = row
		return nil
	})
	if err != nil {
		return err
	}
	var page []byte
	for i := range d.people {
		a := &d.people[i]
		if a.Err != nil {
			continue
		}
		who, known := rows[a.Place]
		if !known {
			who = registry.SubscriberRow{ID: registry.SubscriberID(0), Address: a.Address}
		}
		recipient := compose.Recipient(&who, d.posted)
		recipient.Data = a.data
		if _, page, err = d.writer.Write(page[:0], recipient); err != nil {
			a.Err = d.unwritten(d.at(a), err)
		}
	}
	return nil
}

// fits refuses what would be too much to be kept as one event.
func (d *draft) fits() error {
	size := len(d.posted.Event.Data) + len(d.people)*recipientBytes + len(d.posted.Direct.Files)*fileBytes
	if c := d.posted.Direct.Content; c != nil {
		size += len(c.Subject) + len(c.Text) + len(c.HTML)
	}
	for i := range d.people {
		size += len(d.people[i].data)
	}
	if size <= maxKeptBytes {
		return nil
	}
	return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("data, content and recipients take %d bytes together, more than %d", size, maxKeptBytes), Hint: "send the list in parts"}
}

// unwritten says in the words of the request why a message could not be made:
// what the template reads is not in the data.
func (d *draft) unwritten(at string, err error) error {
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
		moved.Hint = "put it into the data, or let the template do without: {{ ... | default: \"\" }}"
	}
	return &moved
}

// contentPointer is where the part of a template that came with the request
// stands in it.
func contentPointer(pointer string) string {
	pointer = strings.Replace(pointer, "/templates/"+compose.ContentName, "/content", 1)
	if pointer == "/content/images" { // which stand beside it
		return "/attachments"
	}
	return pointer
}
