// Package api serves the HTTP API /v1.
//
// It keeps no state of its own: what it answers with success is kept by the
// part behind it before the answer leaves. A refused request has stored
// nothing, but for line formats (NDJSON), where each line stands by itself and
// has its own answer. When the connection breaks in the middle of a body,
// the whole lines that had arrived are stored and the broken one is not.
//
// Every failure is a problem document (RFC 9457) made from a *fanfare.Error;
// errors.go has the one table of codes and statuses. Invalid input is always
// 422, malformed JSON too, so that a client has one thing to look for; the
// other statuses of 400 and above say what kind of failure it is.
//
// A panic in a handler becomes a 500 with the request's id, and the process
// goes on. Slow clients are cut: JSON bodies have to come within 30 seconds,
// bulk bodies have to move every 60 seconds.
//
// The JSON reads go through huma, which checks their parameters and writes
// OpenAPI 3.1 at /openapi.json. Endpoints that take a body are plain handlers
// that are described to the same document: they are the hot ones, and their
// errors name lines and pointers.
package httpapi
