package httpapi

import (
	"context"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Secrets has what receivers of webhooks verify them with.
type Secrets interface {
	// ReceiverSecret is that of one receiver. NotFound: the service has no such
	// channel. Invalid: it is none to programs, or to is not a URL.
	ReceiverSecret(service, channel, to string) (wire.ReceiverSecret, error)
}

func (a *API) secretRoutes() {
	type ofReceiver struct {
		Named
		Channel string `path:"channel" doc:"name of the channel"`
		To      string `query:"to" required:"true" doc:"URL of the receiver"`
	}
	op := listOp("get-secret", "/v1/channels/{channel}/secret", "configuration", "Show the secret that verifies webhooks")
	op.Description = "Each receiver has a secret of its own, derived from that of the channel: who knows it cannot sign what another receiver would believe. Needs a key with the scope secrets."
	read(a, op, maySeeSecrets, func(_ context.Context, c caller, in *ofReceiver) (wire.ReceiverSecret, error) {
		service, err := a.oneService(c)
		if err != nil {
			return wire.ReceiverSecret{}, err
		}
		return a.deps.Secrets.ReceiverSecret(service, in.Channel, in.To)
	})
}
