// Package webhook is the way out by HTTP: each message is one POST to the URL that
// is its address, signed by Standard Webhooks (https://www.standardwebhooks.com).
//
// # State
//
// A Driver is one channel; what it keeps are connections, which all calls of
// Serve share, HTTP/2 where a receiver offers it. Each call of Serve has one
// request under way at a time, to whatever receiver the next message is for.
//
// # Failure
//
// Every failure is about one receiver and becomes an outcome of its message: Serve
// ends by itself only with its context or its queue. The queue is asked when there is a
// connection, before the first byte of the request. What fails before that has
// not left, and is Temporary; what fails after it is Lost, because the receiver may
// have it. A request is never repeated here, but where the protocol says that
// nobody looked at it (RFC 9113, section 8.7).
//
// # Whom it speaks to
//
// Subscribers choose the URLs, so that anybody could have this server speak to
// what only this server can reach. Addresses that are not of the public Internet
// are refused unless the operator has named them. That is decided on the
// address of each connection in the moment in which it is made, so that neither a
// name that resolves to another address the next time nor a redirect leads
// there; redirects are not followed, and proxies of the environment not used.
package webhook
