package httpapi

import (
	"context"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Secrets returns the secrets with which receivers verify webhooks.
type Secrets interface {
	// ReceiverSecret returns the secret of one receiver. It returns NotFound if the service
	// does not have the channel, and Invalid if it is not a webhook channel or to is not a URL.
	ReceiverSecret(service, channel, to string) (wire.ReceiverSecret, error)
}

func (a *API) secretRoutes() {
	type ofReceiver struct {
		Named
		Channel string `path:"channel" doc:"name of the channel"`
		To      string `query:"to" required:"true" doc:"URL of the receiver"`
	}
	op := listOp("get-secret", "/v1/channels/{channel}/secret", "configuration", "Show the secret that verifies webhooks")
	op.Description = "Each receiver has its own secret, derived from the secret of the channel, so that one receiver cannot forge webhooks for another. Needs a key with the scope secrets."
	read(a, op, maySeeSecrets, func(_ context.Context, c caller, in *ofReceiver) (wire.ReceiverSecret, error) {
		service, err := a.oneService(c)
		if err != nil {
			return wire.ReceiverSecret{}, err
		}
		return a.deps.Secrets.ReceiverSecret(service, in.Channel, in.To)
	})
}
