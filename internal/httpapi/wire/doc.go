// Package wire holds the shapes of the API /v1 that are not words of the
// domain: what the server of package api writes and the Go client reads. It
// has no state and imports only the standard library and the root, so that the
// client stays small.
package wire
