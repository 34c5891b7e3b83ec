// Package preview renders templates without sending: it writes the message that a recipient would get, checks
// templates before they are applied, and lints them. It sends nothing and keeps no state. The API calls it, and the
// registry checks templates with it.
package preview
