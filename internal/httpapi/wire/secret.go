package wire

// A ReceiverSecret has the secrets with which a receiver verifies webhooks.
type ReceiverSecret struct {
	Channel string   `json:"channel" doc:"name of the channel"`
	To      string   `json:"to" doc:"URL of the receiver, in its normal form"`
	Secrets []string `json:"secrets" doc:"secrets (whsec_...) or, if the channel signs with Ed25519, public keys (whpk_...), the newest first; more than one during a rotation"`
}
