// Package signedlink signs and verifies the links in a message to unsubscribe and to change
// preferences, and the return addresses for bounces and unsubscribe emails. The rendering of
// messages creates them; the recipient pages and the inbound mail server verify them.
//
// State: a [Signer] contains its keys and reusable buffers, and belongs to one goroutine.
// Nothing is stored: a link is self-contained.
//
// Failure: a link or an address that does not verify is refused with the code Forbidden,
// without a reason.
package signedlink
