// Package httpapi serves the HTTP API /v1, the recipient pages and the OpenAPI document.
//
// It stores nothing itself: internal/server passes it the components that do (Dependencies).
// A successful response is sent only after its changes are durable. A rejected request has
// stored nothing, except in NDJSON bodies, where each line is stored and answered
// separately. If the connection breaks during such a body, the complete lines that had arrived are
// stored and the incomplete one is not.
//
// Every failure is a problem document (RFC 9457) made from a *fanfare.Error; codes.go has
// the table of codes and statuses. Invalid input is always 422, malformed JSON included.
//
// A panic in a handler becomes a 500 with the id of the request, and the process continues.
// Slow clients are disconnected: a JSON body must arrive within 30 seconds, and a bulk body
// must make progress at least every 60 seconds.
//
// Most endpoints without a body use huma, which checks their parameters and writes OpenAPI 3.1
// at /openapi.json. Most endpoints with a body are plain handlers that are described in the
// same document: they receive most of the requests, and their errors give lines and pointers.
package httpapi
