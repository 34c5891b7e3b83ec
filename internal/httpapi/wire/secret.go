package wire

// A ReceiverSecret is what a receiver of webhooks verifies them with.
type ReceiverSecret struct {
	Channel string   `json:"channel" doc:"name of the channel"`
	To      string   `json:"to" doc:"URL of the receiver, in its normal form"`
	Secrets []string `json:"secrets" doc:"secrets (whsec_...) or, if the channel signs with Ed25519, public keys (whpk_...), the newest first; more than one during a rotation"`
}
