// Package webhook is the driver for HTTP: each message is one POST request to the URL that
// is its address, or to the URL of the channel's provider, signed as Standard Webhooks (https://www.standardwebhooks.com) defines.
// Package channels creates the drivers, and package deliver calls Serve. attempt.go sends one
// request, keys.go signs it, and transport.go decides which addresses may be reached.
//
// # State
//
// A Driver is one channel. It keeps open connections, which all calls of Serve share, with
// HTTP/2 if a receiver offers it. Each call of Serve has one request at a time, to the
// receiver of its message.
//
// # Failure
//
// Every failure concerns one receiver and becomes the outcome of its message: Serve ends
// only with its context or its queue. The message is released when there is a connection,
// before the first byte of the request. A failure before that is Temporary, since nothing
// was sent; a failure after it is Lost, because the receiver may have the message. The
// driver does not repeat requests, except if the protocol says that the receiver has not
// processed it (RFC 9113, section 8.7).
//
// # Reachable addresses
//
// Subscribers choose the URLs, so any subscriber could make this server contact hosts that only
// this server can reach. The driver therefore refuses addresses outside the public Internet
// unless the operator allows them. It checks the address of each connection when the
// connection is opened, so that a name that resolves differently the next time cannot bypass
// the check. It does not follow redirects and ignores the proxy settings of the
// environment.
package webhook
