// Package signedlink signs and verifies what a message carries for the way back: the
// links to unsubscribe and to change preferences, and the return addresses that bounces
// and mails to unsubscribe arrive at. The rendering of messages signs, the pages of
// recipients and the inbound mail server verify.
//
// State: a [Signer] keeps its keys and memory that it uses again; it belongs to one
// goroutine. Nothing is stored: a link contains all that it stands for.
//
// Failure: a link or an address that does not verify is refused with the code Forbidden,
// without a reason.
package signedlink
