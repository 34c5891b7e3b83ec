package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Destinations lists and resumes the destinations of channels. Its methods return NotFound
// if the service does not have the channel.
type Destinations interface {
	// Destinations lists the destinations of a channel that have problems or for which
	// messages wait, by name.
	Destinations(ctx context.Context, service, channel string) ([]wire.Destination, error)
	// ResumeDestination sends the messages that wait for a destination. It returns NotFound
	// if the destination is unknown and no messages wait for it.
	ResumeDestination(ctx context.Context, service, channel, name string) error
}

func (a *API) destinationRoutes() {
	tags := []string{"operations"}
	type ofChannel struct {
		Page
		Channel string `path:"channel" doc:"name of the channel"`
	}
	read(a, huma.Operation{OperationID: "list-destinations", Method: http.MethodGet, Path: "/v1/channels/{channel}/destinations", Tags: tags,
		Summary:     "List the destinations of a channel that have problems or for which messages wait",
		Description: "A destination is the domain of addresses, or the host and port of webhooks. Limits that the server has learned from replies are held in memory until it stops; deferred messages are durable."}, mayRead,
		func(ctx context.Context, c caller, in *ofChannel) (wire.Destinations, error) {
			service, err := a.oneService(c)
			if err != nil {
				return wire.Destinations{}, err
			}
			all, err := a.deps.Destinations.Destinations(ctx, service, in.Channel)
			if err != nil {
				return wire.Destinations{}, err
			}
			list, next, err := pageOf(listingOf("destinations", service, in.Channel), &in.Page, all, func(d *wire.Destination) string { return d.Name })
			return wire.Destinations{Destinations: orEmpty(list), Next: next}, err
		})

	type one struct {
		Named
		Channel     string `path:"channel" doc:"name of the channel"`
		Destination string `path:"destination" doc:"domain of addresses, or host:port of webhooks"`
	}
	act(a, huma.Operation{OperationID: "resume-destination", Method: http.MethodPost, Path: "/v1/channels/{channel}/destinations/{destination}/resume", Tags: tags,
		Summary:     "Send the messages that wait for a destination",
		Description: "Ends the suspension of the destination and discards the limits that were learned from its replies. Messages that wait for the destination are sent within a second; deliveries between two attempts keep their times. If the destination still rejects messages, it is suspended again for a longer time."}, mayConfigure,
		func(ctx context.Context, c caller, in *one) error {
			service, err := a.oneService(c)
			if err != nil {
				return err
			}
			name := strings.ToLower(in.Destination)
			if err := a.deps.Destinations.ResumeDestination(ctx, service, in.Channel, name); err != nil {
				return err
			}
			a.note(ctx, audit.Operation{Service: service, Action: "resume", Kind: "destination", Name: in.Channel + "/" + name}, nil)
			return nil
		})
}
