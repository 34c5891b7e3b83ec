// Package address checks the addresses of recipients (email addresses and webhook URLs) and
// returns their normal forms. The registry, the rendering of messages and
// the senders use it.
//
// It keeps no state and makes no DNS lookups. Errors are *fanfare.Error with the code Invalid.
// An error about a URL does not quote it: a URL may contain a secret.
package address
