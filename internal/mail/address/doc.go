// Package address checks the addresses of recipients, mail addresses and URLs of
// webhooks, and returns their normal forms. The registry, the rendering of messages and
// the senders use it.
//
// It keeps no state and asks no DNS. Errors are *fanfare.Error with the code Invalid.
// An error about a URL does not quote it: a URL may contain a secret.
package address
