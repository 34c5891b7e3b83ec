package wire

// A ReceiverSecret is what a receiver of webhooks verifies them with.
type ReceiverSecret struct {
	Channel string   `json:"channel" doc:"name of the channel"`
	To      string   `json:"to" doc:"URL of the receiver, in its normal form"`
	Secrets []string `json:"secrets" doc:"whsec_..., or whpk_..., a public key, where the channel signs by Ed25519; the newest first; more than one while the channel's is being changed"`
}
