package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// OneEvent identifies an event, by its public id or by the id given by the sender.
type OneEvent struct {
	Named
	ID string `path:"id" doc:"event id (evt-...), or the id given by the sender"`
}

type deliveriesOf struct {
	OneEvent
	Recipient string `query:"recipient" doc:"only deliveries to this address or subscriber"`
	State     string `query:"state" enum:"pending,deferred,accepted,delivered,failed,expired,cancelled,suppressed" doc:"only deliveries in this state"`
	Reason    string `query:"reason" maxLength:"200" doc:"only deliveries that failed, expired, were cancelled or were suppressed for this reason, as in the reasons of the event"`
	Cursor    string `query:"cursor" maxLength:"600" doc:"the value of next from the previous page, with the same filters; default: the first page"`
	Limit     int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"maximum number of entries per page"`
}

// Picked has the filters for lists of past work. It is exported because huma reads
// only exported fields, including embedded ones.
type Picked struct {
	Page
	Topic string    `query:"topic" doc:"only events of this topic"`
	Since time.Time `query:"since" doc:"only events accepted at or after this time (RFC 3339)"`
	Until time.Time `query:"until" doc:"only events accepted before this time (RFC 3339)"`
}

type broadcastsBy struct {
	Picked
	State string `query:"state" enum:"running,paused,cancelled,completed" doc:"only broadcasts in this state"`
	Lane  string `query:"lane" enum:"urgent,normal,bulk" doc:"only broadcasts in this lane"`
	Kind  string `query:"kind" enum:"event,message,digest" doc:"only topic events, only direct messages, or only digests"`
}

type historyOf struct {
	Picked
	Subscriber string `path:"subscriber" doc:"address or id of the subscriber"`
	Channel    string `query:"channel" doc:"only deliveries over this channel"`
	State      string `query:"state" enum:"pending,deferred,accepted,delivered,failed,expired,cancelled,suppressed" doc:"only deliveries in this state"`
}

// pick converts the filters that all these lists have.
func (p *Picked) pick(service string) report.Pick {
	return report.Pick{Service: service, Topic: p.Topic, Since: p.Since, Until: p.Until, Limit: p.Limit}
}

// listing returns the listing of the list with these filters.
func (p *Picked) listing(list, service string, more ...string) listing {
	return listingOf(list, service, append(more, p.Topic, p.Since.Format(time.RFC3339Nano), p.Until.Format(time.RFC3339Nano))...)
}

func (a *API) traceRoutes() {
	get := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{"traces"}, Summary: summary}
	}
	const short = "Later pages do not contain new entries, and no entry is on two pages. A search with a filter ends after a time: the page can then have fewer entries than limit, and has searched_until and next, which continues the search."
	read(a, get("get-event", "/v1/events/{id}", "Get the stages and counts of an event"), mayRead,
		func(ctx context.Context, c caller, in *OneEvent) (fanfare.Broadcast, error) {
			_, b, err := a.event(ctx, c, in.ID)
			return b, err
		})
	read(a, get("list-deliveries", "/v1/events/{id}/deliveries", "List the deliveries of an event"), mayRead, a.deliveries)
	read(a, get("get-delivery", "/v1/deliveries/{id}", "Get a delivery with its attempts"), mayRead, a.delivery)

	events := get("list-events", "/v1/events", "List the events, the newest first")
	events.Description = "An event appears in the list after its match. " + short
	read(a, events, mayRead, func(ctx context.Context, c caller, in *broadcastsBy) (page wire.Events, err error) {
		page.Events, page.Next, page.SearchedUntil, err = a.broadcasts(ctx, c, "events", in)
		return page, err
	})
	broadcasts := get("list-broadcasts", "/v1/broadcasts", "List the broadcasts, the newest first")
	broadcasts.Description = short
	read(a, broadcasts, mayRead, func(ctx context.Context, c caller, in *broadcastsBy) (page wire.Broadcasts, err error) {
		page.Broadcasts, page.Next, page.SearchedUntil, err = a.broadcasts(ctx, c, "broadcasts", in)
		return page, err
	})
	history := get("list-history", "/v1/subscribers/{subscriber}/deliveries", "List the deliveries to one subscriber, the newest first")
	history.Description = short
	read(a, history, mayRead, a.history)
}

// broadcasts reads a page of a list of broadcasts.
func (a *API) broadcasts(ctx context.Context, c caller, name string, in *broadcastsBy) (list []fanfare.Broadcast, next string, searched *time.Time, err error) {
	l := in.listing(name, c.service, in.State, in.Lane, in.Kind)
	p := in.pick(c.service)
	p.State, p.Lane, p.Kind = in.State, in.Lane, in.Kind
	if p.After, err = l.key(in.Cursor); err != nil {
		return nil, "", nil, err
	}
	page, err := a.deps.Reports.Broadcasts(ctx, p)
	return orEmpty(page.List), l.next(page.Next), timeOrNil(page.SearchedUntil), err
}

func (a *API) history(ctx context.Context, c caller, in *historyOf) (page wire.DeliveryPage, err error) {
	s, err := a.oneService(c)
	if err != nil {
		return page, err
	}
	places, err := a.deps.Subscriptions.SubscriberPlaces(ctx, s, in.Subscriber)
	if err != nil {
		return page, err
	}
	l := in.listing("history", s, in.Subscriber, in.Channel, in.State)
	p := in.pick(s)
	p.Channel, p.State = in.Channel, in.State
	if p.After, err = l.key(in.Cursor); err != nil {
		return page, err
	}
	list, err := a.deps.Reports.History(ctx, places, p)
	return wire.DeliveryPage{Deliveries: orEmpty(list.List), Next: l.next(list.Next), SearchedUntil: timeOrNil(list.SearchedUntil)}, err
}

func (a *API) deliveries(ctx context.Context, c caller, in *deliveriesOf) (page wire.DeliveryPage, err error) {
	ref, _, err := a.event(ctx, c, in.ID)
	if err != nil {
		return page, err
	}
	if in.Recipient != "" {
		if page.Deliveries, err = a.deps.Reports.DeliveryOf(ctx, ref, in.Recipient); err == nil {
			page.Gathered, err = a.deps.Reports.WaitingOf(ctx, ref, in.Recipient)
		}
	} else {
		l := listingOf("deliveries", ref.String(), in.State)
		if in.Reason != "" {
			l = listingOf("deliveries", ref.String(), in.State, in.Reason)
		}
		after, bad := l.key(in.Cursor)
		if bad != nil {
			return page, bad
		}
		var list report.Page[fanfare.Delivery]
		list, err = a.deps.Reports.PickDeliveries(ctx, ref, &report.DeliveryPick{State: in.State, Reason: in.Reason, After: after, Limit: in.Limit})
		page.Deliveries, page.Next, page.Searched = list.List, l.next(list.Next), list.Searched
	}
	page.Deliveries = orEmpty(page.Deliveries)
	return page, err
}

type oneDelivery struct {
	Named
	ID string `path:"id" doc:"id of the delivery, dlv-..."`
}

// delivery finds a delivery of the caller's service. Others do not exist for the caller.
func (a *API) delivery(ctx context.Context, c caller, in *oneDelivery) (fanfare.Delivery, error) {
	ref, ok := fanfare.ParseDeliveryRef(in.ID)
	if !ok {
		return fanfare.Delivery{}, problem.NotFound("delivery", in.ID)
	}
	d, err := a.deps.Reports.Delivery(ctx, ref)
	if err == nil && c.service != "" && d.Service != c.service {
		err = problem.NotFound("delivery", in.ID)
	}
	if err != nil {
		return fanfare.Delivery{}, err
	}
	return d, nil
}

// event finds an event of the caller's service. Others do not exist for the caller.
func (a *API) event(ctx context.Context, c caller, id string) (fanfare.EventRef, fanfare.Broadcast, error) {
	service := c.service
	if _, public := fanfare.ParseEventRef(id); !public { // ids given by senders are unique only within a service
		var err error
		if service, err = a.oneService(c); err != nil {
			return fanfare.EventRef{}, fanfare.Broadcast{}, err
		}
	}
	ref, err := a.deps.Reports.FindEvent(ctx, service, id)
	if err != nil {
		return ref, fanfare.Broadcast{}, err
	}
	b, err := a.deps.Reports.Broadcast(ctx, ref)
	if err == nil && c.service != "" && b.Service != c.service {
		err = problem.NotFound("event", id)
	}
	if err != nil {
		return ref, fanfare.Broadcast{}, err
	}
	return ref, b, nil
}

// timeOrNil returns nil for the zero time.
func timeOrNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// orEmpty returns a list that is encoded as [] and not as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
