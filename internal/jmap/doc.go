// Package jmap serves mailboxes over JMAP (RFC 8620, RFC 8621): the session, method calls, uploads and downloads, and changes by EventSource and
// by WebSocket (RFC 8887).
//
// State. A Server counts the requests, uploads and streams of each account that run now. It remembers successful logins with app passwords for
// half a minute, because checking one takes a millisecond of CPU time; a revoked app password is therefore accepted for that time.
// Everything else is in the mailbox store.
//
// Logins. A program sends an app password with HTTP Basic. A page in a browser sends a token, which the backend of a customer got from the API,
// as a Bearer token. A token is accepted from the pages of its origins only, and never in a URL; an app password only from the origins in the
// settings of the server.
//
// Failure. A refused request is a problem document, of JMAP (RFC 8620, section 3.6.1) or of the API. A stream ends when its client does not read,
// when its token expires and when the server stops; the client connects again and compares the states.
//
// The package internal/httpapi passes requests below /jmap/ to Serve.
package jmap
