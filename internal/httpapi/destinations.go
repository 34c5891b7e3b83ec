package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Destinations are whom channels send to. NotFound: the service has no such
// channel.
type Destinations interface {
	// Destinations lists those of a channel that are not well, and those for whom
	// messages wait, by name.
	Destinations(ctx context.Context, service, channel string) ([]wire.Destination, error)
	// ResumeDestination has leave what waits for one. NotFound: nothing is known of
	// it, and nothing waits.
	ResumeDestination(ctx context.Context, service, channel, name string) error
}

func (a *API) destinationRoutes() {
	tags := []string{"operations"}
	type ofChannel struct {
		Page
		Channel string `path:"channel" doc:"name of the channel"`
	}
	read(a, huma.Operation{OperationID: "list-destinations", Method: http.MethodGet, Path: "/v1/channels/{channel}/destinations", Tags: tags,
		Summary:     "The destinations of a channel that are not well, and those for whom messages wait",
		Description: "A destination is the domain of addresses, or host and port of webhooks. What their answers have shown is known since the server started; what was put off is kept."}, mayRead,
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
		Destination string `path:"destination" doc:"the domain of addresses, or host:port of webhooks"`
	}
	act(a, huma.Operation{OperationID: "resume-destination", Method: http.MethodPost, Path: "/v1/channels/{channel}/destinations/{destination}/resume", Tags: tags,
		Summary:     "Have leave what waits for a destination",
		Description: "It is not left alone any more, and what its refusals have shown of how much it takes is forgotten. What was put off for it leaves within a second; what is between two attempts keeps its time. Where it still refuses it is left alone again, for longer."}, mayConfigure,
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
