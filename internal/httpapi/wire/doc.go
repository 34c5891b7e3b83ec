// Package wire has the types of the API /v1 that are not domain types: those that
// package httpapi writes and the Go client reads. It has no state and imports only
// the standard library and the root package, so that the client stays small.
package wire
