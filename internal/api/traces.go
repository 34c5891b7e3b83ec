package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/api/wire"
)

// OneEvent names an event, by its public id or by the id that its sender gave.
type OneEvent struct {
	Named
	ID string `path:"id" doc:"evt-..., or the id that the sender gave"`
}

type deliveriesOf struct {
	OneEvent
	Recipient string `query:"recipient" doc:"only those to this address or subscriber"`
	State     string `query:"state" enum:"pending,deferred,accepted,delivered,failed,expired,cancelled,suppressed" doc:"only those in this state"`
	Cursor    string `query:"cursor" doc:"next of the page before"`
	Limit     int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type Listing struct {
	Named
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type historyOf struct {
	Listing
	Subscriber string `path:"subscriber" doc:"address or id"`
}

func (a *API) traceRoutes() {
	get := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{"traces"}, Summary: summary}
	}
	read(a, get("get-event", "/v1/events/{id}", "What one event set off: its stages and counts"), mayRead,
		func(ctx context.Context, c caller, in *OneEvent) (fanfare.Broadcast, error) {
			_, b, err := a.event(ctx, c, in.ID)
			return b, err
		})
	read(a, get("list-deliveries", "/v1/events/{id}/deliveries", "Who got an event, and how"), mayRead, a.deliveries)
	read(a, get("list-broadcasts", "/v1/broadcasts", "The latest events and what became of them"), mayRead,
		func(ctx context.Context, c caller, in *Listing) (wire.Broadcasts, error) {
			list, err := a.parts.Reports.Broadcasts(ctx, c.service, in.Limit)
			return wire.Broadcasts{Broadcasts: orEmpty(list)}, err
		})
	read(a, get("list-history", "/v1/subscribers/{subscriber}/deliveries", "What one person got, the latest first"), mayRead,
		func(ctx context.Context, c caller, in *historyOf) (wire.DeliveryPage, error) {
			s, err := a.oneService(c)
			if err != nil {
				return wire.DeliveryPage{}, err
			}
			places, err := a.parts.Subscriptions.SubscriberPlaces(ctx, s, in.Subscriber)
			if err != nil {
				return wire.DeliveryPage{}, err
			}
			list, err := a.parts.Reports.History(ctx, s, places, in.Limit)
			return wire.DeliveryPage{Deliveries: orEmpty(list)}, err
		})
}

func (a *API) deliveries(ctx context.Context, c caller, in *deliveriesOf) (page wire.DeliveryPage, err error) {
	ref, _, err := a.event(ctx, c, in.ID)
	if err != nil {
		return page, err
	}
	if in.Recipient != "" {
		page.Deliveries, err = a.parts.Reports.DeliveryOf(ctx, ref, in.Recipient)
	} else {
		page.Deliveries, page.Next, err = a.parts.Reports.Deliveries(ctx, ref, in.State, in.Cursor, in.Limit)
	}
	page.Deliveries = orEmpty(page.Deliveries)
	return page, err
}

// event finds an event that the caller may see. Another service's does not exist.
func (a *API) event(ctx context.Context, c caller, id string) (fanfare.EventRef, fanfare.Broadcast, error) {
	service := c.service
	if _, public := fanfare.ParseEventRef(id); !public { // the sender's own ids are apart for each service
		var err error
		if service, err = a.oneService(c); err != nil {
			return fanfare.EventRef{}, fanfare.Broadcast{}, err
		}
	}
	ref, err := a.parts.Reports.FindEvent(ctx, service, id)
	if err != nil {
		return ref, fanfare.Broadcast{}, err
	}
	b, err := a.parts.Reports.Broadcast(ctx, ref)
	if err == nil && c.service != "" && b.Service != c.service {
		err = notFound("event", id)
	}
	if err != nil {
		return ref, fanfare.Broadcast{}, err
	}
	return ref, b, nil
}

// orEmpty makes a list that is shown as [] and not as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
